"""Which commits belong together, which set is the newest, and which commits nobody will want: decided on keys alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from contract.keys import commit_of

KEPT_SETS = 3


@dataclass(frozen=True, slots=True)
class RestoreSet:
    """One commit per committing rank of one attempt, all of the same step."""

    attempt: int
    step: int
    keys: tuple[str, ...]
    """In the order of rank."""


def complete_sets(keys: Iterable[str]) -> list[RestoreSet]:
    """The newest first: by attempt, then by step.

    Complete means: every rank that committed anything in that attempt has a commit at that step. A rank that never
    committed is not missed; after a restore each rank that has files of its own commits them at once, so that from the
    second attempt on the committing ranks are known from the start.
    """
    found: dict[int, dict[int, dict[int, str]]] = defaultdict(lambda: defaultdict(dict))
    for key in keys:
        if place := commit_of(key):
            attempt, step, rank = place
            found[attempt][step][rank] = key
    return [
        RestoreSet(attempt, step, tuple(ranks[rank] for rank in sorted(ranks)))
        for attempt, steps in sorted(found.items(), reverse=True)
        for step, ranks in sorted(steps.items(), reverse=True)
        if ranks.keys() == {rank for others in steps.values() for rank in others}
    ]


def stale_commits(keys: Iterable[str], rank: int, *, kept: int = KEPT_SETS) -> list[str]:
    """The commits of `rank` that are older than the newest `kept` complete sets; none while there are fewer sets."""
    everything = list(keys)
    sets = complete_sets(everything)
    if len(sets) < kept:
        return []
    oldest = (sets[kept - 1].attempt, sets[kept - 1].step)
    stale = []
    for key in everything:
        place = commit_of(key)
        if place and place[2] == rank and place[:2] < oldest:
            stale.append(key)
    return sorted(stale)
