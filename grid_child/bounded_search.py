"""Searches a line by an expression of a person's, which may need years for it, and gives up in time."""

from __future__ import annotations

import re
import signal
from types import FrameType

LONGEST_SEARCH_S = 5.0
"""Seconds of processor time that one line may take."""


class SlowExpression(Exception):
    """The expression needs longer for a line than it may."""


def search(pattern: re.Pattern[str], line: str) -> re.Match[str] | None:
    """Returns the first match. Raises SlowExpression. Only the main thread may call it: a signal alone gets into a search that runs."""

    def give_up(_number: int, _frame: FrameType | None) -> None:
        raise SlowExpression

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_SEARCH_S)
    try:
        return pattern.search(line)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
