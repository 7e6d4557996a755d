"""Tests of the function that makes the catalogue's tables and roles."""
