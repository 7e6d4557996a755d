"""Terminate: no instance of the job is left, however the attempt ended."""
