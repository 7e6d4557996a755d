"""Tests of the cleanup after an execution's end."""
