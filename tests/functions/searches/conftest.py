"""The account of the tests of the search function, for those that ask AWS."""

from __future__ import annotations

from tests.functions.search.conftest import there

SHARED = (there,)
"""Fixtures of another file, which pytest finds here."""
