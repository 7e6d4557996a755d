"""Tests of what the end of every job shares: its report."""
