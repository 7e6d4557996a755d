"""Tests of the grid's child."""
