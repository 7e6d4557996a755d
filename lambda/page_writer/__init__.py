"""Writes the pages of jobs, grids and searches: for each start and end, and by the clock. No end waits for it."""
