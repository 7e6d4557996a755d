"""Repeats calls until trouble has passed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from grid_child.pace import backoff_s
from grid_child.trouble import Trouble
from grid_child.waits import Waits

T = TypeVar("T")
TRIES = 20
"""About eight minutes, with full jitter and pauses of up to a minute; after that the child's next attempt goes on."""


class Retry:
    """Repeats a call until it gets through. `base_s` is the first pause's length, `most_s` the longest's."""

    def __init__(self, waits: Waits, chance: random.Random, *, base_s: float, most_s: float) -> None:
        self._waits, self._chance, self._base_s, self._most_s = waits, chance, base_s, most_s

    def __call__(self, call: Callable[[], T]) -> T:
        """Raises the last Trouble after TRIES calls, and every other error at once."""
        for tries in range(1, TRIES):
            try:
                return call()
            except Trouble:
                self._waits.sleep(backoff_s(tries, self._base_s, self._most_s, self._chance))
        return call()
