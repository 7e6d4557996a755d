"""Tests of the Build machine's function."""
