"""Sends this rank's files of a set, and writes its part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.commits import CORES, Folder
from agent.position import Position
from agent.sets.answering import ROUNDED_S, Answer, AnsweringRank, answer_again
from agent.sets.recognising import Recogniser, Saved
from agent.sets.resting import rest_s
from agent.sets.state import SetState
from agent.snapshot import FileState
from agent.store import Store
from agent.thinning import Thinning
from contract.codec import compact, encode
from contract.commits import Commit, CommittedFile, Contents, Missed, Part, SetPlan
from contract.keys import LAST_SET, BytesPrefix

TRIES, PAUSE_S = 20, 0.05
"""A trainer that replaces its checkpoint all the time is between a file and its name for a moment; the next moment it is not."""


class Late(Exception):
    """The folder has moved on from the checkpoint that was to be committed."""

    def __init__(self, verdict: Answer) -> None:
        super().__init__(verdict.reason)
        self.verdict = verdict
        """The answer that is due instead."""


class Committer:
    """Of one rank in one attempt. Not for use by two threads at once."""

    def __init__(
        self, place: Position, store: Store, folder: Folder, recogniser: Recogniser, thinning: Thinning, state: SetState, *,
        examine: Callable[[SetPlan, Saved, float], AnsweringRank], replan: Callable[[AnsweringRank], AnsweringRank],
        note: Callable[[str], None], clock: Callable[[], float], sleep: Callable[[float], None],
    ) -> None:  # fmt: skip
        """`clock` is this machine's time. `examine` brings together what there is to judge, `replan` does so for what lies here now."""
        self._place, self._store, self._folder, self._recogniser, self._state = place, store, folder, recogniser, state
        self._thinning, self._examine, self._replan = thinning, examine, replan
        self._note, self._clock, self._sleep = note, clock, sleep
        self._keys = BytesPrefix(place.job.id)
        self._waiting: frozenset[str] = frozenset()

    def commit(self, rank: AnsweringRank) -> tuple[AnsweringRank, Answer]:
        """Sends the files and writes the part; the rank as it was judged once they were open, and the answer that this came to. A rank that
        has opened the set itself commits what its trainer has finished by now. Raises what a send raises."""
        opened = rank.plan.rank == self._place.rank and rank.plan.number != LAST_SET
        verdict = Answer(Part.FILES)
        for attempt in range(TRIES if opened else 1):
            if attempt:
                self._sleep(PAUSE_S)
                rank = self._replan(rank)
            try:
                return self._commit(rank), Answer(Part.FILES)
            except Late as late:
                verdict = late.verdict
            if verdict.part is None:
                break
        return rank, verdict

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

    def _commit(self, first: AnsweringRank) -> AnsweringRank:
        plan, latest, began = first.plan, first, self._clock()
        waits = frozenset[str]()

        def select(own: Sequence[FileState]) -> Sequence[FileState]:
            nonlocal latest, waits
            saved = self._recogniser.judge(own, first.saved.at if first.saved.ended_well else None)
            if self._place.job.workbench is not None and plan.number != LAST_SET:
                saved, waits = self._leave_restless(saved, began)
            latest = self._examine(plan, saved, first.waited_s)
            if (verdict := answer_again(first, latest)).part is not Part.FILES:
                raise Late(verdict)
            return latest.chosen

        contents = self._send(plan, select)
        self._note_waiting(waits)
        self._write_part(latest, contents, [one for one in self._committed if one.path in waits])
        return latest

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

    def _send(self, plan: SetPlan, select: Callable[[Sequence[FileState]], Sequence[FileState]]) -> Contents:
        """Sends the folder, and takes note of the objects that this made, also where it fails: no document may ever list them."""
        before, cores = self._folder.keys, None if plan.number == LAST_SET else CORES
        try:
            return self._folder.send(select, empty_folders=not plan.layout, cores=cores)
        finally:
            self._thinning.sent(self._folder.keys - before)

    def _write_part(self, rank: AnsweringRank, contents: Contents, earlier: Sequence[CommittedFile]) -> None:
        """`earlier`: files that stay as they were committed before."""
        plan, saved = rank.plan, rank.saved
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
            moment=(word.at if word else newest) if rank.clock_is_right else 0.0,
            ended_well=saved.ended_well,
            goes_beyond=word is not None and newest > word.at + ROUNDED_S,
            place=plan.place,
            beside=not plan.names
            and not plan.layout
            and all(saved.is_beside(one) or saved.are_words(one) for one in rank.chosen),
        )
        self._state.newest_key, self._state.newest = self.say(plan, Part.FILES, compact(commit)), commit
        self._recogniser.take(saved.own)
        self._thinning.add(self._state.newest_key, commit)
