"""Tests of searches that ask AWS use the account of the search function's tests."""

from __future__ import annotations

from tests.functions.search.conftest import there

SHARED = (there,)
"""Fixtures of another file, which pytest finds here."""
