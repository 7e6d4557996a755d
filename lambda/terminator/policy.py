"""Decides whether Terminate writes the job's report, or keeps the one that is there because it knows more; and whether an attempt
brought its job further."""

from __future__ import annotations

from collections.abc import Iterable

from aws.checkpoints import ClosedSet
from contract.keys import LAST_SET


def is_overtaken(written: object, attempts: int, *, meanwhile: bool) -> bool:
    """Whether the report in the bucket knows more than this Terminate, which may be slow or run twice.

    It does if it is about a later attempt, or if it was written about this attempt while this Terminate ran.
    """
    if not isinstance(written, dict) or not isinstance(known := written.get("attempts"), int):
        return False
    return known > attempts or (meanwhile and known == attempts)


def newest_step(closed: Iterable[ClosedSet], before: int) -> int:
    """Returns the highest step of which a set was ever closed, `before` this attempt or in it."""
    return max([before, *(one.step for one in closed)])


def has_progressed(closed: Iterable[ClosedSet], before: int) -> bool:
    """Whether the attempt closed a checkpoint that is newer than all before it, of which `before` has the highest step.

    The set of an attempt's end may hold no more than what was restored, and its step says that. Any other set is opened for new files
    alone, so that it counts where the trainer reports no step.
    """
    return any(one.step > before if one.step >= 0 else one.number != LAST_SET for one in closed)
