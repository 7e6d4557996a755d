"""How tests wait for processes and threads: until something holds, and so long that only a hang runs out of time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HANG_S = 600.0
"""Seconds after which a wait counts as a hang. It says nothing about how fast anything has to be: beside a busy core, at the lowest
priority, a rehearsal took ten times as long as on a quiet machine."""


def condition(process: int) -> str:
    """Returns a process's state as the kernel has it: `R` runs, `T` is stopped, `Z` has ended; empty for one that is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def lives(process: int) -> bool:
    """Whether the process exists and has not ended."""
    return condition(process) not in {"", "Z"}


def until(look: Callable[[], Any], limit_s: float = HANG_S) -> Any:
    """Returns what `look` returns once it is true. Raises AssertionError after `limit_s` seconds."""
    deadline, pause = time.monotonic() + limit_s, 0.01
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {limit_s:g} s"
        time.sleep(pause)
        pause = min(1.5 * pause, 0.3)  # a look may be many calls, and what it waits for needs the processor too
    return found
