"""Tests of what pushed commits build."""
