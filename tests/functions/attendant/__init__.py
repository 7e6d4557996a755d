"""Tests of the attendant."""
