"""Tests of the code that runs on the machines."""
