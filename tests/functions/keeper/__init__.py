"""Tests of the function that fills the catalogue."""
