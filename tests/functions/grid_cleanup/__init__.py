"""Tests of the cleanup of grids."""
