"""Tests of the function that writes pages."""
