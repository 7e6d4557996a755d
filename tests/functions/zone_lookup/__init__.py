"""Tests of the function that looks up the zones of a region."""
