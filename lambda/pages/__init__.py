"""Writes the pages of jobs, grids and searches: facts in, one file of HTML out."""
