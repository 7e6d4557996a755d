"""Tests of Launch."""
