"""The tables of grids that are refused."""
