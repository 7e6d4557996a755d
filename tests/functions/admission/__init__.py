"""Tests of Admit."""
