"""Mutants: lines that matter most, each changed for the worse, and the tests that have to fail when it is."""
