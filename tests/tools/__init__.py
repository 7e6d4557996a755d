"""Tests of what the Makefile runs."""
