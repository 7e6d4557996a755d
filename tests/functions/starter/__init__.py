"""Tests of what uploaded data starts."""
