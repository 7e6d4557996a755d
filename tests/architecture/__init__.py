"""Tests of how the parts of the source may depend on each other."""
