"""Brings this rank's checkpoints into sets: opens them, answers with its part, and closes them as the last one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter

from agent import sets
from agent.commits import CORES, Folder
from agent.growth import Growth
from agent.position import Position
from agent.progress import Named, ProgressFile
from agent.retention import History, history
from agent.sets import Now, Result
from agent.snapshot import Changed, FileState
from agent.store import Store
from agent.thinning import Thinning
from contract.codec import compact, decode, encode
from contract.commits import CheckpointSet, Commit, Contents, Missed, Part, SetPlan
from contract.keys import LAST_SET, BytesPrefix, CommitKind

CLOCK_S = 2.0
"""A machine's clock that differs from AWS's by more than this is wrong; AWS's times have whole seconds."""
OBSERVE_S = 10.0
"""Between two looks at which files of the folder only grow, where the interval is not shorter."""


class NeverWhole(Exception):
    """The ranks do not save what can be restored together; the message says what to do."""


class Late(Exception):
    """The folder has moved on from the checkpoint that was to be committed; the message names a file."""


class Checkpoints:
    """CHECKPOINT_DIR of one rank in one attempt. Not for use by two threads at once."""

    def __init__(
        self, place: Position, store: Store, folder: Folder, progress: ProgressFile, *,
        now: Callable[[], float], note: Callable[[str], None], clock: Callable[[], float] = time.time,
        changed_s: Callable[[FileState], float] = attrgetter("changed_s"),
    ) -> None:  # fmt: skip
        """`now` is AWS's time, `clock` this machine's; `changed_s` is when a file changed, by this machine's clock."""
        self._place, self._store, self._folder, self._progress = place, store, folder, progress
        self._now, self._note, self._clock, self._changed_s = now, note, clock, changed_s
        self._keys = BytesPrefix(place.job.id)
        self._number = 1
        self._due = place.boundary(now())
        self._poll_at = self._walk_at = self._settle_at = self._again_at = self._observe_at = 0.0
        self._growth = Growth(folder.path, clock=clock)
        self._heard: Named | None = None  # the checkpoint that was the newest at the last look
        self._plan: SetPlan | None = None
        self._seen_at = 0.0
        self._answered = ""  # the step, or the files, of the last answer
        self._restored = -1
        self._passed: Named | None = None  # this rank wanted to open a set with it, and it was no longer whole
        self._plans: dict[int, SetPlan] = {}
        self._left = False  # whether a set waits to be settled
        self._silent: SetPlan | None = None  # answered without a name of this rank's own
        self._thinning = Thinning(store, folder, job=place.job.id, rank=place.rank, now=now, note=note)
        self.newest: Commit | None = None
        self.newest_key = ""
        self.closed_step = -1

    def restored(self, step: int, *, named: bool = False) -> None:
        """Takes what lies in the folder for the checkpoint of this step, which is in S3 already. `named`: by this rank's own trainer."""
        own = self._folder.list_own()
        self._answered, self._restored = f"step {step}" if named and own else _files_of(own), step
        if named and own:
            self._progress.restored(step, max(self._changes(own).values()))

    def tick(self) -> bool:
        """Does what there is to do now, which mostly is nothing; whether it answered a set. Raises what a commit raises, and NeverWhole."""
        if self._place.rank >= self._place.ranks:
            return False
        now = self._now()
        self._retract()
        if self._left:
            self._settle()
        self._observe(now)
        if now < self._due:
            return False
        if self._plan is None:
            self._plan = self._find(now) or self._open(now)
            self._seen_at = now
        return self._plan is not None and self._answer(self._plan, now)

    def finish(self, *, ended_well: bool = False) -> bool:
        """Answers the last set, after the training process has ended; whether it did. Raises what a commit raises. A command that has
        ended well, by itself and with 0, has written what it wanted: all that is there is of its last checkpoint."""
        if self._place.rank >= self._place.ranks:
            return False
        self._retract()
        named, own = self._progress.named, self._list_own()
        if self._place.ranks == 1 and not own:
            return False
        self._number, now, step = LAST_SET, self._now(), self._step()
        self._plans[LAST_SET] = SetPlan(
            number=LAST_SET, step=step, names=0, named_at=0.0, opened_at=now, rank=self._place.rank
        )
        newer = sets.newer_than(self._changes(own), named.at) if named else ""
        if named is not None and newer and not ended_well:
            self._miss(f"{newer} is newer than its checkpoint {named.step}: its trainer ended while it saved")
        elif own:
            limit = named.at if named and not ended_well else 0.0
            self._commit(step, named, limit=limit, final=True, ended_well=ended_well)
        elif named is not None and not named.count and not ended_well:
            self._miss(f"its restored files are gone, and it has not finished a checkpoint after {named.step}")
        elif named is None and self.closed_step < 0 and self._folder.is_saving:
            self._miss("its trainer ended while it saved its first checkpoint")
        else:
            self._say(Part.NOTHING, b"{}")
        with suppress(NeverWhole):
            self._settle()
        return True

    def _step(self) -> int:
        """The step of what lies in the folder; -1 where that is unknown."""
        told = self._progress.checkpoint_step()
        return self._restored if told < 0 else told

    # Opening and answering

    def _find(self, now: float) -> SetPlan | None:
        """The plan of the next set, if another rank has written it. Asks seldom."""
        named = self._progress.named
        fresh, self._heard = named != self._heard, named
        if self._place.ranks == 1 or (now < self._poll_at and not fresh):
            return None
        self._poll_at = now + sets.poll_s(now - self._due, self._place.every_s)
        return self._read()

    def _read(self) -> SetPlan | None:
        """Asks for the key first: a request for an object that is not there counts as denied, because a job may list only its own keys."""
        key = self._keys.plan(self._place.attempt, self._number)
        return decode(SetPlan, self._store.get(key)) if key in self._store.keys(key) else None

    def _open(self, now: float) -> SetPlan | None:
        """Opens the next set if this rank has something new; the plan that then holds, which may be another rank's."""
        named = self._progress.named
        if named is not None and (named == self._passed or self._answered == f"step {named.step}"):
            return None
        clock = self._clock()
        due = self._due + clock - now
        if (
            named
            and self._place.ranks > 1
            and sets.waits_for_next(named, clock, due, self._place.every_s, self._place.job.checkpoint_scope)
        ):
            return None
        if (named is None and self._place.rank != 0) or self._is_open(now):
            return None
        if named is None and not self._opens_unnamed(now):
            return None
        if named is not None:
            own = self._list_own()
            if sets.newer_than(self._changes(own), named.at) or (self._place.ranks == 1 and not own):
                self._passed = named  # the next one is taken as soon as it is named
                return None
        plan = SetPlan(
            number=self._number,
            step=self._step(),
            names=named.count if named else 0,
            named_at=named.at if named and self._clock_is_right(now) else 0.0,
            opened_at=now,
            rank=self._place.rank,
        )
        key = self._keys.plan(self._place.attempt, self._number)
        return plan if self._place.ranks == 1 or self._store.create(key, encode(plan)) else self._read()

    def _opens_unnamed(self, now: float) -> bool:
        """Whether rank 0 opens a set although it has named nothing: where it has new files and has left them alone for a while,
        because a trainer that names its checkpoints does so at their end; and where it has none, late, because others may have."""
        if now < self._walk_at:
            return False
        late_s, every_s = now - self._due, self._place.every_s
        self._walk_at = now + sets.poll_s(late_s, every_s)
        own = self._list_own()
        if not own:
            return self._place.ranks > 1 and late_s > sets.OTHERS_FIRST * every_s
        newest = max(self._changes(own).values(), default=0.0)
        rests = self._clock() - newest > min(sets.RESTS_S, every_s / 4) or late_s > every_s
        return rests and self._answered != _files_of(own)

    def _is_open(self, now: float) -> bool:
        """Whether ranks still work on the set before, and have time to."""
        if self._place.ranks == 1 or self._number == 1 or now > self._due + self._place.patience_s:
            return False
        if now < self._settle_at:
            return True
        self._settle_at = now + sets.poll_s(now - self._due, self._place.every_s)
        return len(self._history().parts(self._place.attempt, self._number - 1)) < self._place.ranks

    def _answer(self, plan: SetPlan, now: float) -> bool:
        named, waited_s = self._progress.named, now - self._seen_at
        if named is None and now < self._again_at:
            return False
        if named is not None and named.step < plan.step and waited_s <= self._place.patience_s:
            return False
        own = self._list_own()
        answer = sets.answer(
            plan, named, self._changes(own), empty=self._folder.is_empty, scope=self._place.job.checkpoint_scope, waited_s=waited_s,
            every_s=self._place.every_s, patience_s=self._place.patience_s, clock_is_right=self._clock_is_right(now),
        )  # fmt: skip
        if answer.now is Now.WAIT:
            self._again_at = now + sets.poll_s(waited_s, self._place.every_s)
            return False
        if answer.now is Now.COMMIT:
            limit = 0.0 if plan.names == 0 else named.at if named else plan.named_at
            self._commit(plan.step if plan.names else self._step(), named, limit=limit)
        elif answer.now is Now.NOTHING:
            self._say(Part.NOTHING, b"{}")
        else:
            self._miss(answer.reason)
        self._silent = plan if plan.names and named is None else None
        self._answered = f"step {named.step}" if named else _files_of(own)
        self._plans[self._number] = plan
        self._number, self._plan, self._due = self._number + 1, None, self._place.boundary(plan.opened_at)
        self._left = True
        self._settle()
        return True

    def _commit(
        self, step: int, named: Named | None, *, limit: float, final: bool = False, ended_well: bool = False
    ) -> None:
        """Sends the files and writes the part. `limit`: no file may be newer than that; 0 for none."""

        def fits(own: Sequence[FileState]) -> None:
            changes = self._changes(own)
            if limit and (newer := sets.newer_than(changes, limit)):
                raise Late(f"{newer} changed while the commit of checkpoint {step} began")
            newest.append(max(changes.values(), default=0.0))

        newest = list[float]()
        try:
            contents = self._send(fits, final=final)
        except Late as problem:
            self._miss(str(problem))
            return
        right = self._clock_is_right(self._now())
        commit = Commit(
            job=self._place.job.id,
            attempt=self._place.attempt,
            rank=self._place.rank,
            step=step,
            created_at=self._clock(),
            final=final,
            files=contents.files,
            links=contents.links,
            folders=contents.folders,
            number=self._number,
            named=named is not None,
            moment=(named.at if named else newest[-1]) if right else 0.0,
            ended_well=ended_well,
            goes_beyond=named is not None and newest[-1] > named.at + sets.ROUNDED_S,
        )
        self.newest_key, self.newest = self._say(Part.FILES, compact(commit)), commit
        self._thinning.add(self.newest_key, commit)

    def _send(self, fits: Callable[[Sequence[FileState]], None], *, final: bool) -> Contents:
        """Sends the folder, and takes note of the objects that this made, also where it fails: no document may ever list them."""
        before = self._folder.keys
        try:
            return self._folder.send(fits, mark=self._mark, cores=None if final else CORES)
        finally:
            self._thinning.sent(self._folder.keys - before)

    def _say(self, part: Part, document: bytes) -> str:
        """Writes this rank's part of the set; its key."""
        key = self._keys.part(self._place.attempt, self._number, self._place.rank, part.value)
        self._store.put(key, document)
        return key

    def _miss(self, reason: str) -> None:
        self._note(f"checkpoints: set {self._number} is missed: {reason}")
        self._say(Part.MISSED, encode(Missed(rank=self._place.rank, reason=reason)))

    def _retract(self) -> None:
        """Opens a set again that this rank had no name for when it answered, and whose checkpoint its trainer names now: what it
        answered was not complete."""
        plan, named = self._silent, self._progress.named
        if plan is None or named is None:
            return
        self._silent = None
        if named.step <= plan.step:
            attempt = self._place.attempt
            self._store.put(
                self._keys.part(attempt, plan.number, self._place.rank, Part.MISSED.value),
                encode(Missed(rank=self._place.rank, reason=f"it named checkpoint {named.step} later")),
            )
            self._store.delete([self._keys.closed(attempt, plan.number)])
            self._note(
                f"checkpoints: set {plan.number} is taken back: this rank names checkpoint {named.step} only now"
            )

    # Closing and removing

    def _settle(self) -> None:
        """Closes each set of this attempt to which the last rank has answered, and removes old ones. Raises NeverWhole."""
        known, attempt = self._history(), self._place.attempt
        reason = ""
        for number, parts in sorted(known.answered(attempt, self._place.ranks).items()):
            if number in self._plans and (attempt, number) not in known.closed:
                known, reason = self._close(known, number, parts)
        self._left = False
        closed = [number for of, number in known.closed if of == attempt and number in self._plans]
        if closed:
            self.closed_step = max(self.closed_step, self._plans[max(closed)].step, 0)
        answered = known.answered(attempt, self._place.ranks)
        since_s = self._now() - min((plan.opened_at for plan in self._plans.values()), default=self._now())
        if sets.is_hopeless(answered, any_closed=bool(known.closed), since_s=since_s):
            why = reason or self._why(known)
            raise NeverWhole(f"none of {len(answered)} checkpoints was whole: {why}")
        self._thinning.thin(known, self.newest)

    def _close(self, known: History, number: int, parts: dict[int, Part]) -> tuple[History, str]:
        """Closes a set that every rank has answered, if its parts are a checkpoint; otherwise the reason, empty where a rank said it."""
        plan, scope = self._plans[number], self._place.job.checkpoint_scope
        result = sets.outcome(parts, ranks=self._place.ranks, named=plan.names > 0 or number == LAST_SET, scope=scope)
        own = [rank for rank, part in sorted(parts.items()) if part is Part.FILES]
        read = [self._part_of(rank, number) for rank in own] if number == LAST_SET or plan.names == 0 else []
        if result.state is Result.CLOSED and number == LAST_SET:
            result = sets.agreed(read)
        if result.state is not Result.CLOSED:
            if result.reason:
                self._note(f"checkpoints: set {number} is not complete: {result.reason}")
            return known, result.reason
        attempt, step = self._place.attempt, max((one.step for one in read), default=plan.step)
        keys = tuple(self._keys.part(attempt, number, rank) if rank in own else "" for rank in range(self._place.ranks))
        made = CheckpointSet(
            job=self._place.job.id, attempt=attempt, number=number, step=step, closed_at=self._now(), parts=keys
        )
        self._store.put(self._keys.closed(attempt, number), encode(made))
        self._plans[number] = replace(plan, step=step)
        self._note(f"checkpoint {step} is closed: {len(own)} of {self._place.ranks} ranks have files")
        return known.with_closed(attempt, number, self._keys.closed(attempt, number)), ""

    def _part_of(self, rank: int, number: int) -> Commit:
        if rank == self._place.rank and self.newest is not None and self.newest.number == number:
            return self.newest
        return decode(Commit, self._store.get(self._keys.part(self._place.attempt, number, rank)))

    def _why(self, known: History) -> str:
        """What a rank said of the last set that was missed."""
        for number in sorted(known.answered(self._place.attempt, self._place.ranks), reverse=True):
            for rank, part in sorted(known.parts(self._place.attempt, number).items()):
                if part is Part.MISSED:
                    key = self._keys.part(self._place.attempt, number, rank, part.value)
                    return f"Rank {rank} said: {decode(Missed, self._store.get(key)).reason}."
        return ""

    def _history(self) -> History:
        return history(self._store.keys(self._keys.commits(CommitKind.CHECKPOINTS)))

    def _observe(self, now: float) -> None:
        """Sees which files grow, also while no set is due: a log is known as one by the time of the first."""
        if now >= self._observe_at:
            self._observe_at = now + min(OBSERVE_S, self._place.every_s / 4)
            with suppress(Changed):
                self._growth.observe(self._folder.list_own())

    def _list_own(self) -> Sequence[FileState]:
        return self._mark(self._folder.list_own())

    def _mark(self, own: Sequence[FileState]) -> Sequence[FileState]:
        """Marks the logs that have only grown since before the checkpoint that was named before the newest one. They belong to no
        checkpoint, and their changes say nothing of one. Without names nothing tells them from a save that takes long."""
        named = self._progress.named
        return self._growth.mark(own, since=named.at - named.period_s if named and named.period_s else 0.0)

    def _changes(self, own: Sequence[FileState]) -> dict[str, float]:
        return {one.path: self._changed_s(one) for one in own if not one.grows}

    def _clock_is_right(self, now: float) -> bool:
        return abs(self._clock() - now) < CLOCK_S


def _files_of(own: Sequence[FileState]) -> str:
    """Tells one state of the folder from another."""
    return str(hash(tuple(own)))
