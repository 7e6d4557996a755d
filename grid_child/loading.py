"""Loads what stays, libraries and the models of services, without searching it for garbage again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Until the end of the block nothing is searched for garbage: that takes up to a fifth of a child's start, and finds none."""
    searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searched:
            # The two together move all to the oldest objects, or else the next small search would go through every new one.
            gc.freeze()
            gc.unfreeze()
            gc.enable()
