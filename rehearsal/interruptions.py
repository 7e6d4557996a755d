"""Measures what each interruption of a rehearsed job cost: steps that were trained twice, and time without training."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from contract.reports import NodeReport
from rehearsal.intervals import Interval, explain_beginning

PROGRESS = "var/lib/trainyard/progress.json"
"""The trainer's PROGRESS_FILE on a node's disk."""
MOST = 64 * 1024
"""Bytes of it that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """The end of an attempt that another one followed."""

    attempt: int
    error: str
    """As the execution's report names it."""
    cause: str
    steps_lost: int | None
    """Steps that the next attempt trained again; None where no trainer told its steps."""
    recovery_s: float | None
    """Seconds of the rehearsal from the end of training to the next attempt's first new step; None where no step followed."""
    began_anew: str = ""
    """Why the next attempt trained from the beginning; empty if it went on from a checkpoint, or did not train."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """What is known of one attempt once the job is over."""

    reports: Mapping[int, NodeReport]
    last_steps: Sequence[int | None]
    """The last step that the trainer of each of its nodes told, to an agent or not; None where it told none."""
    struck_at: Sequence[float] = ()
    """When a fault took one of its nodes, UTC epoch seconds."""

    @property
    def last_step(self) -> int | None:
        """The last step that a trainer told, to its agent or after the agent's last report."""
        told = [one.progress.step for one in self.reports.values() if one.progress]
        return max([*told, *filter(None, self.last_steps)], default=None)

    @property
    def restored_step(self) -> int:
        return max([0, *(one.restored_step for one in self.reports.values())])

    @property
    def is_fresh(self) -> bool:
        """Whether it trained without a checkpoint of an earlier attempt or job."""
        reports = self.reports.values()
        return any("started" in one.timeline for one in reports) and all(one.restored_step < 0 for one in reports)

    @property
    def stopped_at(self) -> float | None:
        """When the first of its nodes no longer trained."""
        ends = [one.timeline.get("failed", one.timeline.get("ended")) for one in self.reports.values()]
        return min([*self.struck_at, *(end for end in ends if end is not None)], default=None)

    @property
    def stepped_at(self) -> float | None:
        """When the first step was made that is not restored."""
        return min(
            (one.timeline["first_step"] for one in self.reports.values() if "first_step" in one.timeline), default=None
        )


def interruptions(
    attempts: Sequence[AttemptRecord], recovered: Iterable[Mapping[str, object]], interval: Interval
) -> list[Interruption]:
    """The interruptions of a job: `attempts` in order from number 1, `recovered` as report.json has it; `interval` is that of its
    checkpoints."""
    told = {one["attempt"]: one for one in recovered}
    return [
        Interruption(
            attempt=number,
            error=str(told.get(number, {}).get("error", "")),
            cause=str(told.get(number, {}).get("cause", "")),
            steps_lost=None if before.last_step is None else max(0, before.last_step - after.restored_step),
            recovery_s=_between(before.stopped_at, after.stepped_at),
            began_anew=explain_beginning(interval, before.stopped_at) if after.is_fresh else "",
        )
        for number, (before, after) in enumerate(pairwise(attempts), start=1)
    ]


def _between(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else round(end - begin, 2)


def read_step(disk: Path) -> int | None:
    """Returns the last step that a trainer told, which may be anything; None where it told none."""
    file = disk / PROGRESS
    with suppress(OSError, ValueError, RecursionError):
        if file.is_file():  # a pipe would never end
            with file.open("rb") as source:
                told = json.loads(source.read(MOST))
            if isinstance(told, dict) and isinstance(step := told.get("step"), int):
                return step
    return None
