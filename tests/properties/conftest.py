"""What all property tests run under."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True, scope="session")
def what_is_known_by_now_stays() -> None:
    """Services' models too, which earlier tests have loaded, are never garbage."""
    gc.collect()
    gc.freeze()
