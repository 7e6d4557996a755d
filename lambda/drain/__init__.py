"""Drain: before a destroy takes anything away, nothing is admitted, no execution runs, and every instance is gone."""
