"""How often a checkpoint is due in the rehearsal of a job, and what a person reads about it before the run and after a loss.

A rehearsal divides what the product waits for, and brings a loss to a job after seconds instead of hours. With the interval of the
request, no checkpoint would be due before the loss.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from localaws.conditions import Fault
from rehearsal.fault_keys import MOMENTS
from rehearsal.faults import FAULTS

LEAST_MINUTES = 0.02
"""The shortest interval that a division makes, 1.2 s: nodes share this computer, and a file rests for a part of the interval before
it is taken. A request that names a shorter one keeps it."""
ORDERLY = frozenset({"spot-notice", "spot-rebalance"})
"""Faults that give the nodes time to commit a last checkpoint."""
TRAINING = MOMENTS[MOMENTS.index("training") :]
GUIDE = "docs/guides/checkpoints.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """When the checkpoints of an admitted job are due: `every_s` apart since `admitted_at`, UTC epoch seconds."""

    admitted_at: float
    every_s: float


def divide_interval(minutes: float, speed: float) -> float:
    """Returns a request's checkpoint_minutes divided by the rehearsal's speed; a rehearsal that is slower than an account changes
    nothing."""
    return max(minutes / max(speed, 1.0), min(minutes, LEAST_MINUTES))


def describe_interval(minutes: float, divided: float) -> str:
    """Returns the line that says before a run how often checkpoints are due."""
    every = f"checkpoints are due every {divided * 60:g} s of the rehearsal"
    if divided == minutes:
        return f"{every}, as the request says (checkpoint_minutes {minutes:g})"
    asked = f"checkpoint_minutes of the request is {minutes:g} ({minutes * 60:g} s)"
    return f"{every}: {asked}, divided like every duration (never below {LEAST_MINUTES * 60:g} s)"


def list_early(faults: Iterable[Fault]) -> list[str]:
    """Returns a line for every fault that may strike a training before its first checkpoint, without an order that lets it commit one."""
    return [
        f"{one.name} may strike before the first checkpoint is there, and the job then starts from the beginning, as in an account; "
        f"closed=0 among its keys has it wait for a checkpoint"
        for one in faults
        if _is_early(one)
    ]


def _is_early(fault: Fault) -> bool:
    keys = FAULTS[fault.name].keys
    if "closed" not in keys or fault.text("closed") or fault.name in ORDERLY:
        return False
    moment = fault.text("at" if "at" in keys else "step")
    return moment.isdecimal() or moment in TRAINING


def explain_beginning(interval: Interval, stopped_at: float | None) -> str:
    """Returns why an attempt that followed one which stopped training at `stopped_at` (UTC epoch seconds; None if unknown) had no
    checkpoint to go on from."""
    first = interval.admitted_at + interval.every_s
    if stopped_at is not None and stopped_at < first:
        return (
            f"the first checkpoint was due {interval.every_s:g} s after the job was admitted, and the training stopped "
            f"{first - stopped_at:.0f} s before that; a fault with closed=0 waits for a checkpoint"
        )
    return f"no checkpoint was whole when the training stopped; the logs say what the trainer had saved ({GUIDE})"
