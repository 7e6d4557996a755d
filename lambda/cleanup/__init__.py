"""Cleanup: ends what an execution left behind that did not end by its own steps."""
