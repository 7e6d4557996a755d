"""Tests of Sync."""
