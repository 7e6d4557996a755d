"""Tests of how the request of a job is read: its schema, and commands in the words of a shell."""
