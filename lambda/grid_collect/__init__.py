"""Collect: gathers the results of a grid's lines into files for people, and stops a grid that does not end by itself."""
