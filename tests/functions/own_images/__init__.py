"""Tests of the function that has the platform's own images built."""
