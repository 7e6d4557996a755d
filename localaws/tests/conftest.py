"""What holds for every test of the local AWS."""

from __future__ import annotations

import gc


def pytest_unconfigure() -> None:
    """Ends without a last look through the million objects of the local AWS, which takes Python seconds."""
    gc.freeze()
