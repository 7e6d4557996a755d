"""Which sets there were, which of them are closed, and which objects are needed no more: decided by keys alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from agent.store import Stored
from contract.commits import Part, is_closed
from contract.keys import CLOSED, LAST_SET, UNUSABLE, commit_of, set_of

KEPT_SETS = 3
UNLISTED_S = 86_400.0
"""How long an object stays that no document lists and another node may have sent: another attempt may be about to list it."""
SAME_S = 2.0
"""S3's times have whole seconds, and an agent knows AWS's time no better."""


@dataclass(frozen=True, slots=True)
class RestoreSet:
    """One checkpoint: a part of each rank that has files."""

    attempt: int
    order: int
    """Its number; of a set made before sets were closed, its step."""
    keys: tuple[str, ...]
    """Of the document that closes it; of a set made before sets were closed, of all its commits in the order of rank."""
    closed: bool = True
    """Whether a document closes it."""


@dataclass(frozen=True, slots=True)
class History:
    """Every document of a job's checkpoints in one bucket."""

    sets: dict[tuple[int, int], dict[str, str]]
    """By attempt and number: the key of each document by its name."""
    closed: frozenset[tuple[int, int]]
    """What may be restored."""
    unusable: frozenset[tuple[int, int]]
    """Closed, and of no use to a rank."""
    older: dict[tuple[int, int], dict[int, str]]
    """Commits made before there were sets: by attempt and step, the key of each rank's."""

    def parts(self, attempt: int, number: int) -> dict[int, Part]:
        """What each rank answered. Where it took an answer back, the miss counts."""
        found: dict[int, Part] = {}
        for name in sorted(self.sets.get((attempt, number), {})):
            rank, _, ending = name.partition(".")
            if (
                rank[1:].isdecimal()
                and ending in {part.value for part in Part}
                and found.get(int(rank[1:])) is not Part.MISSED
            ):
                found[int(rank[1:])] = Part(ending)
        return found

    def answered(self, attempt: int, ranks: int, may_leave: Collection[int] = ()) -> dict[int, dict[int, Part]]:
        """The sets of the attempt that every rank has answered. Of those that `may_leave`, one that has answered the last set has nothing
        of the others that it did not answer."""
        last = self.parts(attempt, LAST_SET)
        left = {rank: Part.NOTHING for rank in may_leave if rank in last}
        every = {number: left | self.parts(attempt, number) for of, number in self.sets if of == attempt}
        return {number: parts for number, parts in every.items() if len(parts) >= ranks}

    def with_closed(self, attempt: int, number: int, key: str) -> History:
        """The same, with a set that was just closed."""
        sets = {**self.sets, (attempt, number): {**self.sets[attempt, number], CLOSED: key}}
        return replace(self, sets=sets, closed=self.closed | {(attempt, number)})

    def files_of(self, rank: int) -> list[str]:
        """Keys of the rank's documents that list files."""
        name = f"r{rank:04d}.{Part.FILES.value}"
        ours = [keys[name] for keys in self.sets.values() if name in keys]
        return [*ours, *(keys[rank] for keys in self.older.values() if rank in keys)]

    def commits_before(self, attempt: int) -> int:
        """How many documents of earlier attempts list files."""
        parts = [
            Part.FILES
            for of, number in self.sets
            if of < attempt
            for part in self.parts(of, number).values()
            if part is Part.FILES
        ]
        return len(parts) + sum(len(keys) for (of, _), keys in self.older.items() if of < attempt)

    def restorable(self) -> list[RestoreSet]:
        """What may be restored, the newest first: by attempt, then by number."""
        closed = [RestoreSet(*place, (self.sets[place][CLOSED],)) for place in self.closed]
        return sorted([*closed, *self._older_sets()], key=lambda each: (each.attempt, each.order), reverse=True)

    def _older_sets(self) -> Iterable[RestoreSet]:
        """Before sets were closed, a set was whole where every rank that had any commit of the attempt had one of that step."""
        ranks = defaultdict[int, set[int]](set)
        for (attempt, _), keys in self.older.items():
            ranks[attempt] |= keys.keys()
        for (attempt, step), keys in self.older.items():
            if keys.keys() == ranks[attempt]:
                yield RestoreSet(attempt, step, tuple(keys[rank] for rank in sorted(keys)), closed=False)


def history(keys: Iterable[str]) -> History:
    """Sorts the keys under a job's commits of checkpoints; other keys are left out."""
    sets = defaultdict[tuple[int, int], dict[str, str]](dict)
    older = defaultdict[tuple[int, int], dict[int, str]](dict)
    for key in keys:
        if place := set_of(key):
            sets[place.attempt, place.number][place.name] = key
        elif commit := commit_of(key):
            older[commit[0], commit[1]][commit[2]] = key
    closed = {place for place, names in sets.items() if is_closed(names)}
    unusable = frozenset(place for place in closed if UNUSABLE in sets[place])
    return History(dict(sets), frozenset(closed - unusable), unusable, dict(older))


@dataclass(frozen=True, slots=True)
class Stale:
    """Returns the documents that are needed no more; those that close sets have to be deleted first."""

    closing: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


def stale(known: History, rank: int, *, kept: int = KEPT_SETS) -> Stale:
    """The rank's documents that are older than the newest `kept` sets; none while there are fewer sets. Rank 0 removes what belongs to
    no rank as well."""
    whole = known.restorable()
    if len(whole) < kept:
        return Stale()
    oldest = (whole[kept - 1].attempt, whole[kept - 1].order)
    own = f"r{rank:04d}."
    closing, parts = list[str](), [keys[rank] for place, keys in known.older.items() if place < oldest and rank in keys]
    for place in (place for place in known.sets if place < oldest):
        names = known.sets[place]
        if rank == 0:  # a set whose parts are about to go is no set
            closing += [names[name] for name in sorted(names) if not name.startswith("r")]
        parts += [names[name] for name in sorted(names) if name.startswith(own)]
    return Stale(tuple(closing), tuple(parts))


def leftover(stored: Iterable[Stored], *, listed: Collection[str], sent: Mapping[str, float], now: float) -> list[str]:
    """Keys of the objects to delete: those that no kept document has `listed`, and that no node can be about to list.

    `sent`: by key, when this agent sent an object, or when a document listed it that was just deleted. Times are AWS's, UTC epoch
    seconds. A machine that is believed dead may still run: its agent lists the bucket while the next attempt has sent objects, and no
    document yet. Keys are made of content, so such an object may have the key of one that was sent before.
    """

    def is_over(one: Stored) -> bool:
        modified = one.modified.timestamp()
        return modified <= sent.get(one.key, 0.0) + SAME_S or now - modified > UNLISTED_S

    return [one.key for one in stored if one.key not in listed and is_over(one)]
