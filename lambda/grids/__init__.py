"""Looks up a grid's lines, writes its files and report, and ends a grid that does not end by itself."""
