"""Sends this rank's files of a set, and writes its part."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.commits import CORES, Folder
from agent.layouts import Shards
from agent.position import Position
from agent.sets.answering import ROUNDED_S, newer_than
from agent.sets.recognising import Recogniser, Saved
from agent.sets.resting import rest_s
from agent.sets.state import SetState
from agent.snapshot import FileState
from agent.store import Store
from agent.thinning import Thinning
from contract.codec import compact, encode
from contract.commits import Commit, CommittedFile, Contents, Missed, Part, SetPlan
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
        self, place: Position, store: Store, folder: Folder, recogniser: Recogniser, thinning: Thinning, state: SetState, *,
        note: Callable[[str], None], now: Callable[[], float], clock: Callable[[], float], sleep: Callable[[float], None],
    ) -> None:  # fmt: skip
        """`now` is AWS's time, `clock` this machine's."""
        self._place, self._store, self._folder, self._recogniser, self._state = place, store, folder, recogniser, state
        self._thinning, self._note, self._now, self._clock, self._sleep = thinning, note, now, clock, sleep
        self._keys = BytesPrefix(place.job.id)
        self._waiting: frozenset[str] = frozenset()

    def commit(self, plan: SetPlan, saved: Saved, replan: Callable[[], SetPlan]) -> tuple[SetPlan, Saved]:
        """Sends the files and writes the part; the plan that it fits, and what was seen of the folder. A rank that has opened the set
        itself commits what its trainer has finished by now, `replan` then says with which plan. Raises what a send raises."""
        moves = plan.rank == self._place.rank and plan.number != LAST_SET
        problem = ""
        for attempt in range(TRIES if moves else 1):
            if attempt:
                self._sleep(PAUSE_S)
                plan = replan()
            try:
                return plan, self._commit(plan, saved, moves=moves)
            except Late as late:
                problem = str(late)
        self.miss(plan, problem)
        return plan, saved

    def say(self, plan: SetPlan, part: Part, document: bytes) -> str:
        """Writes this rank's part of the set; its key."""
        key = self._keys.part(self._place.attempt, plan.number, self._place.rank, part.value)
        self._store.put(key, document)
        return key

    def miss(self, plan: SetPlan, reason: str) -> None:
        """Says that this rank has not what the plan names."""
        self._note(f"checkpoints: set {plan.number} is missed: {reason}")
        self.say(plan, Part.MISSED, encode(Missed(rank=self._place.rank, reason=reason)))

    def take_back(self, plan: SetPlan, reason: str) -> None:
        """Takes an answer back: what it was about turned out to be incomplete. The set may be closed already."""
        self.miss(plan, reason)
        self._store.delete([self._keys.closed(self._place.attempt, plan.number)])

    def _commit(self, plan: SetPlan, first: Saved, *, moves: bool) -> Saved:
        """`moves`: whether what the trainer has named since `first` was seen may take the place of that."""
        seen, before, began = [first], self._recogniser.find_shards(first, plan), self._clock()
        waits = frozenset[str]()

        def select(own: Sequence[FileState]) -> Sequence[FileState]:
            latest = self._recogniser.judge(own, first.at if first.ended_well else None)
            nonlocal waits
            if self._place.job.workbench is not None and plan.number != LAST_SET:
                latest, waits = self._leave_restless(latest, began)
            seen.append(latest if moves else replace(latest, word=first.word))
            shards = self._recogniser.find_shards(seen[-1], plan)
            chosen = seen[-1].choose(plan, shards)
            if not first.ended_well and (problem := self._find_change(plan, seen[-1], shards, before)):
                raise Late(problem)
            if not chosen:
                raise Late(f"all files were removed while the commit of checkpoint {plan.step} began")
            return chosen

        contents = self._send(plan, select)
        self._note_waiting(waits)
        self._write_part(plan, contents, seen[-1], [one for one in self._committed if one.path in waits])
        return seen[-1]

    @property
    def _committed(self) -> Sequence[CommittedFile]:
        """This rank's files as S3 has them, of its last commit or from before the attempt."""
        return self._state.newest.files if self._state.newest else self._folder.restored

    def _leave_restless(self, saved: Saved, began: float) -> tuple[Saved, frozenset[str]]:
        """What rests of the files that a person saves one by one, and the paths of the others: those that changed shortly before the
        commit `began`, or since. So a file that is written all the time keeps no other one waiting."""
        since = began - rest_s(self._place.every_s)
        restless = self._recogniser.resting.list_restless(saved.own, saved.changes, since=since, now=saved.at)
        waits = frozenset(restless)
        return replace(saved, own=[one for one in saved.own if one.path not in waits]), waits

    def _note_waiting(self, waits: frozenset[str]) -> None:
        """Says which files wait, once for as long as they do."""
        if new := sorted(waits - self._waiting):
            more = f", and {len(new) - 1} more" if len(new) > 1 else ""
            self._note(f"checkpoints: {new[0]}{more}: still written, so S3 has what it had of it until it rests")
        self._waiting = waits

    def _find_change(self, plan: SetPlan, latest: Saved, shards: Shards | None, before: Shards | None) -> str:
        """Why what lies here is not the checkpoint of the plan any more, or not all that was there `before`; empty where it is."""
        began = f"the commit of checkpoint {plan.step} began"
        if shards is None or before is None:
            limit = latest.word.at if latest.word else plan.named_at if plan.names else math.inf
            newer = newer_than(latest.changes, limit)
            return f"{newer} changed while {began}" if newer else ""
        if gone := sorted(before.files - shards.files):
            return f"{gone[0]} was removed while {began}"
        return f"{shards.reason}, as {began}" if shards.reason else ""

    def _send(self, plan: SetPlan, select: Callable[[Sequence[FileState]], Sequence[FileState]]) -> Contents:
        """Sends the folder, and takes note of the objects that this made, also where it fails: no document may ever list them."""
        before, cores = self._folder.keys, None if plan.number == LAST_SET else CORES
        try:
            return self._folder.send(select, empty_folders=not plan.layout, cores=cores)
        finally:
            self._thinning.sent(self._folder.keys - before)

    def _write_part(self, plan: SetPlan, contents: Contents, saved: Saved, earlier: Sequence[CommittedFile]) -> None:
        """`earlier`: files that stay as they were committed before."""
        word, newest = saved.word, max((saved.changes.get(one.path, 0.0) for one in contents.files), default=0.0)
        known = self._recogniser.step if plan.names == 0 else -1
        commit = Commit(
            job=self._place.job.id,
            attempt=self._place.attempt,
            rank=self._place.rank,
            step=known if known >= 0 else word.step if word and plan.names else plan.step,
            created_at=self._clock(),
            final=plan.number == LAST_SET,
            files=(*contents.files, *earlier),
            links=contents.links,
            folders=contents.folders,
            number=plan.number,
            named=word is not None,
            moment=(word.at if word else newest) if is_right(self._clock(), self._now()) else 0.0,
            ended_well=saved.ended_well,
            goes_beyond=word is not None and newest > word.at + ROUNDED_S,
            place=plan.place,
        )
        self._state.newest_key, self._state.newest = self.say(plan, Part.FILES, compact(commit)), commit
        self._recogniser.resting.take(saved.own)
        self._thinning.add(self._state.newest_key, commit)
