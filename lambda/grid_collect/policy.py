"""Decides the error of a grid some of whose lines had no training after the last round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contract.errors import GridFailed
from grids.policy import SHOWN


def gave_up(absent: Sequence[int], rounds: int, submissions: Sequence[Mapping[str, Any]]) -> GridFailed:
    """After the last round: lines of which no child made anything. `submissions` are what Submit heard of its jobs."""
    heard = [str(one["problem"]) for one in submissions if one.get("problem")]
    shown = ", ".join(map(str, absent[:SHOWN])) + (f" and {len(absent) - SHOWN} more" if len(absent) > SHOWN else "")
    return GridFailed(
        f"After {rounds} rounds {len(absent)} lines have neither a record nor a training (indices {shown}): their children "
        "did not begin, or broke. Their log says more. "
        + (f"Batch said: {' '.join(heard)[:2000]}" if heard else "Batch gave no reason.")
    )
