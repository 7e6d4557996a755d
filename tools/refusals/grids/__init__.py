"""The tables of refused grids."""
