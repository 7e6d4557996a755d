"""Helpers for tests on the local AWS: its own tests use them, and so can those of whatever is deployed in it."""
