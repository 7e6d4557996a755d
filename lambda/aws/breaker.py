"""Remembers which regions do not answer, so that one silent region does not hold up the work of all others."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from botocore.exceptions import ConnectionError as NoConnection
from botocore.exceptions import HTTPClientError

T = TypeVar("T")
OPEN_S = 45.0
"""How long a region is left alone after it gave no answer: the next tick of the clock asks it once more."""
_silent = dict[str, float]()
"""When each region gave no answer, UTC epoch seconds; kept as long as Lambda keeps the process."""


class Silent(Exception):
    """The region gave no answer a moment ago and was not asked again."""


def asked(region: str, ask: Callable[[], T]) -> T:
    """The region's answer. Raises Silent without asking where it gave none lately; errors that the region answers pass through."""
    since = _silent.get(region)
    if since is not None and 0 <= time.time() - since < OPEN_S:
        raise Silent(f"{region} gave no answer {time.time() - since:.0f} s ago, and is left alone for {OPEN_S:.0f} s")
    try:
        answer = ask()
    except (NoConnection, HTTPClientError):
        _silent[region] = time.time()
        raise
    _silent.pop(region, None)
    return answer
