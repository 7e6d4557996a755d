"""Decides what sets need of ranks that may leave before the job is done: facts in, the answers that count out."""

from __future__ import annotations

from collections.abc import Collection

from agent.position import Position
from agent.retention import History
from contract.commits import Part
from contract.keys import LAST_SET


def find_required(place: Position, number: int, left: Collection[int]) -> frozenset[int]:
    """Returns the ranks without whose files a set is not closed: not those that had `left` before it, nor in the last one those that
    can be spared."""
    leavers = place.spare if number == LAST_SET else [rank for rank in place.may_leave if rank in left]
    return place.must_have - frozenset(leavers)


def find_awaited(place: Position, known: History) -> list[int]:
    """Returns the ranks for whose answer the last set of a job that is done waits: those that end the job, and each server that has files
    in S3 and cannot be spared, because the set may be half a checkpoint without them."""
    parts = known.parts(place.attempt, LAST_SET)
    absent = [rank for rank in range(place.ranks) if rank not in parts]
    return [
        rank for rank in absent if rank not in place.may_leave or (rank not in place.spare and known.files_of(rank))
    ]


def fill_last(place: Position, known: History) -> dict[int, Part]:
    """Returns the answers to the last set, with nothing for ranks that have not answered."""
    return dict.fromkeys(range(place.ranks), Part.NOTHING) | known.parts(place.attempt, LAST_SET)


def drop_spare(place: Position, parts: dict[int, Part]) -> dict[int, Part]:
    """Returns the same answers without the files of ranks that can be spared."""
    return {rank: Part.NOTHING if rank in place.spare else part for rank, part in parts.items()}
