"""Tests of code that comes out of git: the process that asks a host."""
