"""The command line: a person checks, starts, follows, stops and reads jobs, grids and searches from a terminal. It decides nothing."""
