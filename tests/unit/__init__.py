"""Decisions, without AWS, processes or clocks."""
