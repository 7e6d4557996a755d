"""Decides what sets need of ranks that may leave before the job is done: facts in, the answers that count out."""

from __future__ import annotations

from collections.abc import Collection

from agent.position import Position
from agent.retention import History
from contract.commits import Part
from contract.keys import LAST_SET


def find_required(place: Position, number: int, left: Collection[int]) -> frozenset[int]:
    """Returns the ranks without whose files a set is not closed: not those that had `left` before it, nor in the last one those whose
    failure means nothing."""
    leavers = place.alone if number == LAST_SET else [rank for rank in place.may_leave if rank in left]
    return place.must_have - frozenset(leavers)


def fill_last(place: Position, known: History) -> dict[int, Part]:
    """Returns the answers to the last set, with nothing for ranks that have not answered and need not; none where another rank
    has to. A server that has files in S3 is waited for: the set may be half a checkpoint without them."""
    parts = known.parts(place.attempt, LAST_SET)
    absent = [rank for rank in range(place.ranks) if rank not in parts]
    serving = (rank for rank in absent if rank not in place.alone)
    if not set(absent) <= set(place.may_leave) or any(known.files_of(rank) for rank in serving):
        return {}
    return parts | dict.fromkeys(absent, Part.NOTHING)


def drop_alone(place: Position, parts: dict[int, Part]) -> dict[int, Part]:
    """Returns the same answers without the files of ranks whose failure means nothing."""
    return {rank: Part.NOTHING if rank in place.alone else part for rank, part in parts.items()}
