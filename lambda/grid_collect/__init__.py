"""Collect: what came of a grid's lines, into files that people read; and the end of a grid that does not end by itself."""
