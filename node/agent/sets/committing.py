"""Sends this rank's files of a set, and writes its part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.commits import CORES, Folder
from agent.layouts import Shards
from agent.position import Position
from agent.sets.answering import ROUNDED_S, newer_than
from agent.sets.recognising import Recogniser, Saved
from agent.snapshot import FileState
from agent.store import Store
from agent.thinning import Thinning
from contract.codec import compact, encode
from contract.commits import Commit, Contents, Missed, Part, SetPlan
from contract.keys import LAST_SET, BytesPrefix

CLOCK_S = 2.0
"""A machine's clock that differs from AWS's by more than this is wrong; AWS's times have whole seconds."""
TRIES, PAUSE_S = 20, 0.05
"""A trainer that replaces its checkpoint all the time is between a file and its name for a moment; the next moment it is not."""


class Late(Exception):
    """The folder has moved on from the checkpoint that was to be committed; the message names a file."""


def is_right(clock: float, now: float) -> bool:
    """Whether a machine's clock agrees with AWS's."""
    return abs(clock - now) < CLOCK_S


class Committer:
    """Of one rank in one attempt. Not for use by two threads at once."""

    def __init__(
        self, place: Position, store: Store, folder: Folder, recogniser: Recogniser, thinning: Thinning, *,
        note: Callable[[str], None], now: Callable[[], float], clock: Callable[[], float], sleep: Callable[[float], None],
    ) -> None:  # fmt: skip
        """`now` is AWS's time, `clock` this machine's."""
        self._place, self._store, self._folder, self._recogniser = place, store, folder, recogniser
        self._thinning, self._note, self._now, self._clock, self._sleep = thinning, note, now, clock, sleep
        self._keys = BytesPrefix(place.job.id)
        self.newest: Commit | None = None
        self.newest_key = ""

    def commit(
        self, plan: SetPlan, saved: Saved, replan: Callable[[], SetPlan], *, ended_well: bool
    ) -> tuple[SetPlan, Saved]:
        """Sends the files and writes the part; the plan that it fits, and what was seen of the folder. A rank that has opened the set
        itself commits what its trainer has finished by now, `replan` then says with which plan. Raises what a send raises."""
        moves = plan.rank == self._place.rank and plan.number != LAST_SET
        for attempt in range(1, TRIES + 1):
            try:
                return plan, self._commit(plan, saved, moves=moves, ended_well=ended_well)
            except Late as problem:
                if attempt == TRIES or not moves:
                    self.miss(plan, str(problem))
                    return plan, saved
                self._sleep(PAUSE_S)
                plan = replan()
        raise AssertionError("unreachable")

    def say(self, plan: SetPlan, part: Part, document: bytes) -> str:
        """Writes this rank's part of the set; its key."""
        key = self._keys.part(self._place.attempt, plan.number, self._place.rank, part.value)
        self._store.put(key, document)
        return key

    def miss(self, plan: SetPlan, reason: str) -> None:
        """Says that this rank has not what the plan names."""
        self._note(f"checkpoints: set {plan.number} is missed: {reason}")
        self.say(plan, Part.MISSED, encode(Missed(rank=self._place.rank, reason=reason)))

    def _commit(self, plan: SetPlan, first: Saved, *, moves: bool, ended_well: bool) -> Saved:
        """`moves`: whether what the trainer has named since `first` was seen may take the place of that."""
        seen = [first]
        before = found.files if (found := self._recogniser.find_shards(first, plan)) else frozenset[str]()
        bound = not plan.layout and (plan.names > 0 or first.word is not None) and not ended_well

        def select(own: Sequence[FileState]) -> Sequence[FileState]:
            latest = self._recogniser.judge(own)
            latest = latest if moves else replace(latest, word=first.word)
            limit = latest.word.at if latest.word else plan.named_at
            shards = self._recogniser.find_shards(latest, plan)
            if not ended_well and shards is not None:
                self._check_place(plan, latest, shards, known=before)
            if bound and (newer := newer_than(latest.changes, limit)):
                raise Late(f"{newer} changed while the commit of checkpoint {plan.step} began")
            seen.append(latest)
            return latest.own if ended_well else latest.choose(plan, shards)

        self._write_part(plan, self._send(plan, select), seen[-1], ended_well=ended_well)
        return seen[-1]

    def _check_place(self, plan: SetPlan, latest: Saved, shards: Shards, known: frozenset[str]) -> None:
        """Raises Late where the checkpoint of the plan is not in its place any more, or not all that was `known` of it."""
        if latest.has_left(plan):
            raise Late(f"the trainer went on from {plan.name} while its commit began")
        if gone := sorted(known - shards.files) or (
            [plan.name] if plan.rank == self._place.rank and not shards.files else []
        ):
            raise Late(f"{gone[0]} was removed while the commit of checkpoint {plan.step} began")
        if shards.reason:
            raise Late(f"{shards.reason}, as the commit of checkpoint {plan.step} began")

    def _send(self, plan: SetPlan, select: Callable[[Sequence[FileState]], Sequence[FileState]]) -> Contents:
        """Sends the folder, and takes note of the objects that this made, also where it fails: no document may ever list them."""
        before, cores = self._folder.keys, None if plan.number == LAST_SET else CORES
        try:
            return self._folder.send(select, empty_folders=not plan.layout, cores=cores)
        finally:
            self._thinning.sent(self._folder.keys - before)

    def _write_part(self, plan: SetPlan, contents: Contents, saved: Saved, *, ended_well: bool) -> None:
        word, newest = saved.word, max((saved.changes.get(one.path, 0.0) for one in contents.files), default=0.0)
        known = self._recogniser.step if plan.names == 0 else -1
        commit = Commit(
            job=self._place.job.id,
            attempt=self._place.attempt,
            rank=self._place.rank,
            step=known if known >= 0 else word.step if word and plan.names else plan.step,
            created_at=self._clock(),
            final=plan.number == LAST_SET,
            files=contents.files,
            links=contents.links,
            folders=contents.folders,
            number=plan.number,
            named=word is not None,
            moment=(word.at if word else newest) if is_right(self._clock(), self._now()) else 0.0,
            ended_well=ended_well,
            goes_beyond=word is not None and newest > word.at + ROUNDED_S,
            place=plan.place,
        )
        self.newest_key, self.newest = self.say(plan, Part.FILES, compact(commit)), commit
        self._recogniser.resting.take(saved.own)
        self._thinning.add(self.newest_key, commit)
