"""Decides what sets need of ranks that may leave before the job is done: facts in, the answers that count out."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agent.position import Position
from agent.retention import History
from contract.commits import Part
from contract.keys import LAST_SET


def find_spare(place: Position, number: int) -> frozenset[int]:
    """Returns the ranks without whose files a set is whole. The last one is without those of any that can be spared; an earlier one waits
    for those whose files the request wants in every set."""
    return frozenset(place.spare) - (frozenset() if number == LAST_SET else place.must_have)


def find_required(place: Position, number: int, left: Collection[int]) -> frozenset[int]:
    """Returns the ranks without whose files a set is not closed: not those that had `left` before it, nor in the last one those that
    can be spared."""
    return place.must_have - find_spare(place, number) - frozenset(rank for rank in place.spare if rank in left)


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


def find_gone(place: Position, known: History) -> frozenset[int]:
    """Returns the ranks that had ended before the newest set of this attempt that is closed, and had nothing of it: it is whole without
    them, and so is the last one."""
    newest = max((of for attempt, of in known.closed if attempt == place.attempt and of != LAST_SET), default=None)
    there = range(place.ranks) if newest is None else known.parts(place.attempt, newest).keys()
    return frozenset(place.may_leave) - frozenset(there)


def drop_files(parts: Mapping[int, Part], ranks: Collection[int]) -> dict[int, Part]:
    """Returns the same answers without the files of these ranks."""
    return {rank: Part.NOTHING if rank in ranks and part is Part.FILES else part for rank, part in parts.items()}
