"""Reads how the processes of a node ended, which what runs each of them wrote down: their launcher's own exit code does not say it."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agent.launching import shared
from agent.launching.worker import CODES

MOST_CODE = 8
ENDED_BY_LAUNCHER = 128 + signal.SIGTERM
"""Exit code of a process that its launcher ended because of another. The launcher's SIGKILL ends what runs the process as well, which then
writes nothing: a written code of SIGKILL is the process' own end, where memory was full."""


class ProcessEnd(NamedTuple):
    """How one process ended. The earliest end sorts first."""

    at: float
    """Epoch seconds."""
    rank: int
    code: int
    """128 + n after signal n."""

    @property
    def words(self) -> str:
        """Names the process, as the end of a sentence about its exit code."""
        return f"; it was process {self.rank} of the training"


def read_ends(folder: Path) -> list[ProcessEnd]:
    """Returns the ends of the node's processes that have ended by themselves, in that order. `folder` is the launcher's."""
    found = list[ProcessEnd]()
    for rank in shared.list_numbers(folder, CODES):
        file = shared.read(folder, f"{CODES}/{rank}", MOST_CODE)
        with suppress(ValueError):  # code of the job may write there
            if file is not None:
                found.append(ProcessEnd(file.written_at, rank, int(file.content)))
    return sorted(found)


def find_cause(ends: Iterable[ProcessEnd]) -> ProcessEnd | None:
    """Returns the first end that failed and that no launcher brought about; None if there is none."""
    return next((one for one in ends if one.code not in (0, ENDED_BY_LAUNCHER)), None)
