"""Brings this rank's checkpoints into sets: opens them, answers with its part, and closes them as the last one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter

from agent.commits import Folder
from agent.layouts import Shards
from agent.position import Position
from agent.progress import NoProgressFile, ProgressFile
from agent.sets.answering import OTHERS_FIRST, Answer, AnsweringRank, answer, look_s, poll_s, waits_for_next
from agent.sets.closing import Closer, NeverWhole
from agent.sets.committing import Committer
from agent.sets.leaving import find_spare
from agent.sets.recognising import Recogniser, Saved, identify
from agent.sets.state import SetState
from agent.snapshot import Changed, FileState
from agent.store import Store
from agent.thinning import Thinning
from contract.codec import compact, decode, encode
from contract.commits import Commit, EmptyPart, Part, SetPlan
from contract.jobs import CheckpointLayout
from contract.keys import LAST_SET, BytesPrefix

OBSERVE_S = 10.0
"""Between two looks at which files of the folder only grow, where the interval is not shorter."""
LATE_S = 120.0
"""What a rank writes into a checkpoint so long after its set was opened is something else."""
LAST_WAIT_S = 10.0
"""For so long a rank with shards waits for the rank that knows which checkpoint is whole, once their trainers have ended."""
CLOCK_S = 2.0
"""A machine's clock that differs from AWS's by more than this is wrong; AWS's times have whole seconds."""


class Checkpoints:
    """CHECKPOINT_DIR of one rank in one attempt. Not for use by two threads at once."""

    def __init__(
        self, place: Position, store: Store, folder: Folder, progress: ProgressFile, *,
        now: Callable[[], float], note: Callable[[str], None], clock: Callable[[], float] = time.time,
        changed_s: Callable[[FileState], float] = attrgetter("changed_s"), sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        """`now` is AWS's time, `clock` this machine's; `changed_s` is when a file changed, by this machine's clock."""
        self._place, self._store, self._folder = place, store, folder
        self._now, self._note, self._clock, self._sleep = now, note, clock, sleep
        self._keys = BytesPrefix(place.job.id)
        self.state = SetState(due=place.boundary(now()))
        self._is_bench = place.job.workbench is not None
        word, layout = progress, place.job.checkpoint_layout
        if self._is_bench:  # what a training there says, or its framework's layout, holds no other file back
            word, layout = NoProgressFile(), CheckpointLayout.NONE
        self._recogniser = Recogniser(
            folder, word, place, layout=layout.value, clock=clock, changed_s=changed_s, note=note,
        )  # fmt: skip
        self._recogniser.due_s = lambda: now() - self.state.due
        self._closer = Closer(place, store, self.state, now=now, note=note)
        self._thinning = Thinning(store, folder, job=place.job.id, rank=place.rank, now=now, note=note)
        self._committer = Committer(
            place, store, folder, self._recogniser, self._thinning, self.state, examine=self._examine, replan=self._replan,
            note=note, clock=clock, sleep=sleep,
        )  # fmt: skip

    @property
    def newest(self) -> Commit | None:
        """This rank's newest part of a set."""
        return self.state.newest

    @property
    def newest_key(self) -> str:
        return self.state.newest_key

    @property
    def closed_step(self) -> int:
        return self.state.closed_step

    @property
    def layout(self) -> str:
        """The layout that was recognised in the folder; empty for none."""
        return self._recogniser.layout

    def restored(self, step: int, *, named: bool = False) -> None:
        """Takes what lies in the folder for the checkpoint of this step, which is in S3 already. `named`: by this rank's own trainer."""
        saved = self._recogniser.restored(named=named, step=step)
        self.state.restored, self.state.done = step, saved.identity

    def tick(self) -> bool:
        """Does what there is to do now, which mostly is nothing; whether it answered a set. Raises what a commit raises, and NeverWhole."""
        if self._place.rank >= self._place.ranks:
            return False
        now, state = self._now(), self.state
        self._observe(now)
        if state.unsettled:
            self._settle()
        if now < state.due:
            return False
        if state.plan is None:
            state.plan, state.seen_at = self._find(now) or self._open(now), now
        plan, waited_s, word = state.plan, now - state.seen_at, identify(self._recogniser.word)
        if plan is not None and state.is_time("folder", now, look_s(waited_s, self._place.every_s, now), word):
            return self._answer(plan, waited_s)
        self._note_late(now)
        return False

    def _note_late(self, now: float) -> None:
        """Says why no set is taken, once for each that is due for longer than an interval."""
        state, late_s = self.state, now - self.state.due
        if state.why and late_s > self._place.every_s and state.noted != state.number:
            state.noted = state.number
            self._note(f"checkpoints: no set for {late_s:.0f} s after one was due: {state.why}")

    def finish(self, *, ended_well: bool = False, ended_at: float | None = None) -> bool:
        """Answers the last set, after the training process has ended; whether it did. Raises what a commit raises. A command that has
        ended well, by itself and with 0, has written what it wanted: all that is there is of its last checkpoint. `ended_at`: when it
        ended, by this machine's clock; None for now."""
        if self._place.rank >= self._place.ranks:
            return False
        self._observe(self._now())
        at = math.inf if ended_well else self._clock() if ended_at is None else ended_at
        saved = self._recogniser.read(at)
        if self._place.ranks == 1 and not saved.own:
            return False
        self.state.number = LAST_SET
        with suppress(NeverWhole):
            self._answer(self._plan_last(saved), math.inf, at)
        return True

    def leave(self) -> None:
        """Answers the last set with nothing, for a rank that others do not wait for and whose command never began; no set of theirs would
        be closed otherwise. Says nothing where a server may have files in S3 that it never brought back: a set without them may be half
        a checkpoint."""
        place, now = self._place, self._now()
        if place.rank >= place.ranks or place.rank not in place.may_leave:
            return
        if place.rank not in place.spare and self._may_have_files():
            return
        plan = self._read_plan(LAST_SET) or SetPlan(
            number=LAST_SET, step=-1, names=0, named_at=0.0, opened_at=now, rank=place.rank
        )
        self._committer.say(plan, Part.NOTHING, compact(EmptyPart()))
        self.state.number = LAST_SET
        self.state.take_answer(plan, "", due=place.boundary(now))
        with suppress(NeverWhole):
            self._settle()

    def _may_have_files(self) -> bool:
        """Whether S3 may have files of this rank from before the attempt; not known where it restored nothing."""
        return self._place.begins_with_files and (self.state.restored is None or bool(self._folder.list_own()))

    # Opening

    def _find(self, now: float) -> SetPlan | None:
        """The plan of the next set, if another rank has written it. Asks seldom, and at once where this rank's trainer has a new name."""
        word, pause_s = self._recogniser.word, poll_s(now - self.state.due, self._place.every_s)
        if self._place.ranks == 1 or not self.state.is_time("plan", now, pause_s, identify(word)):
            return None
        return self._read_plan(self.state.number)

    def _read_plan(self, number: int) -> SetPlan | None:
        """Asks for the key first: a request for an object that is not there counts as denied, because a job may list only its own keys."""
        key = self._keys.plan(self._place.attempt, number)
        return decode(SetPlan, self._store.get(key)) if key in self._store.keys(key) else None

    def _open(self, now: float) -> SetPlan | None:
        """Opens the next set if this rank has something new; the plan that then holds, which may be another rank's. One whose files can be
        spared leaves it to others: what it has says nothing of theirs. Rank 0 opens sets for all that name nothing."""
        if self._place.rank and self._place.rank in find_spare(self._place, self.state.number):
            return None
        word, state, late_s, every_s = self._recogniser.word, self.state, now - self.state.due, self._place.every_s
        if word is not None and (word.count or not self.layout):
            clock, scope = self._clock(), self._place.job.checkpoint_scope
            if identify(word) == state.done:
                return None
            if self._place.ranks > 1 and waits_for_next(word, clock, clock - late_s, every_s, scope):
                return None
        elif not state.is_time("folder before a plan", now, look_s(late_s, every_s, now)):
            return None
        saved = self._recogniser.read()
        if state.unfit and state.unfit == state.number - 1:
            self._settle()
        if self._is_open(now) or (saved.identity == state.done and not self._may_others_have(saved, late_s)):
            return None
        plan = self._plan(state.number, saved)
        return self._write_plan(plan) if self._is_ready(plan, saved, late_s) else None

    def _is_open(self, now: float) -> bool:
        """Whether ranks still work on the set before, and have time to."""
        state, late_s = self.state, now - self.state.due
        if self._place.ranks == 1 or state.settled >= state.number - 1:
            return False
        if state.is_time("answers", now, poll_s(late_s, self._place.every_s)):
            self._settle()
        return state.settled < state.number - 1 and late_s <= self._place.patience_s

    def _is_ready(self, plan: SetPlan, saved: Saved, late_s: float) -> bool:
        """Whether to open a set with this plan of what lies here. A trainer that names its checkpoints, or whose layout shows them, may be
        on any rank; files that nothing names are looked at on rank 0 alone, which opens a set late also where it has none, because others
        may have some."""
        state = self.state
        if saved.word is None and (saved.found is not None or self._place.rank != 0):
            return saved.found is not None
        verdict = answer(self._examine(plan, saved, late_s / 2))  # who opens a set has twice the time to wait for rest
        if saved.word is None:
            state.why = verdict.reason
            return verdict.part is Part.FILES or self._may_others_have(saved, late_s)
        if verdict.part is Part.MISSED or (self._place.ranks == 1 and verdict.part is Part.NOTHING):
            state.done = saved.identity  # the next one is taken as soon as it is named
            return False
        return True

    def _may_others_have(self, saved: Saved, late_s: float) -> bool:
        """Whether others may have the checkpoint, where rank 0 has nothing that is a part of one."""
        if self._place.ranks == 1 or self._place.rank or saved.named is not None or saved.recognised.layout:
            return False
        return late_s > OTHERS_FIRST * self._place.every_s and all(map(saved.is_beside, saved.own))

    def _plan(self, number: int, saved: Saved) -> SetPlan:
        named, whole = saved.named, saved.whole
        return SetPlan(
            number=number,
            step=self._step(saved),
            names=named.count if named else 0,
            named_at=named.at if named and self._is_clock_right() else 0.0,
            opened_at=self._now(),
            rank=self._place.rank,
            layout=whole.layout if whole else "",
            name=whole.name if whole else "",
            needs=tuple(sorted(whole.needs)) if whole else (),
        )

    def _write_plan(self, plan: SetPlan) -> SetPlan | None:
        """The plan that holds: this one, or the one that another rank wrote before."""
        key = self._keys.plan(self._place.attempt, plan.number)
        return plan if self._place.ranks == 1 or self._store.create(key, encode(plan)) else self._read_plan(plan.number)

    def _step(self, saved: Saved) -> int:
        """The step of what lies in the folder; -1 where that is unknown."""
        if saved.whole is not None and saved.whole.step >= 0:
            return saved.whole.step
        known, restored = self._recogniser.step, self.state.restored
        return restored if known < 0 and restored is not None else known

    def _plan_last(self, saved: Saved) -> SetPlan:
        """The plan of the last set: that of the first rank which knows its checkpoint, and whose command was ended. A rank that knows none
        waits for it where shards lie here, and otherwise takes its own."""
        own = self._plan(LAST_SET, saved)
        if saved.ended_well:
            return own
        if saved.named is not None:
            spare = self._place.rank in self._place.spare
            found = self._read_plan(LAST_SET) if spare else self._write_plan(own)
            return found if found and saved.word is None else own
        until = self._now() + LAST_WAIT_S
        while saved.recognised.layout and self._place.ranks > 1:
            if found := self._read_plan(LAST_SET):
                return found
            if self._now() >= until:
                break
            self._sleep(1.0)
        return own

    # Answering

    def _answer(self, plan: SetPlan, waited_s: float, at: float | None = None) -> bool:
        """Answers a set, `waited_s` after this rank saw its plan, infinite once its trainer has ended; whether it did. `at` as in
        Recogniser.read. What another rank's trainer names counts more than a layout here."""
        if plan.names and not plan.layout and plan.rank != self._place.rank:
            self._recogniser.give_way()
        state, rank = self.state, self._examine(plan, self._recogniser.read(at), waited_s)
        verdict = answer(rank)
        is_silent = plan.names > 0 and rank.saved.named is None and (not plan.layout or verdict.part is Part.NOTHING)
        if verdict.part is Part.FILES:
            state.looks.clear()  # a commit that fails is tried again at once
            rank, verdict = self._committer.commit(rank)
        if verdict.part is None:
            state.why = verdict.reason
            return False
        if verdict.part is Part.MISSED and self._place.rank in find_spare(self._place, plan.number):
            verdict = Answer(Part.NOTHING)  # the checkpoint is that of the others
        if verdict.part is Part.NOTHING:
            self._committer.say(plan, Part.NOTHING, compact(EmptyPart(ended_well=rank.saved.ended_well)))
        elif verdict.part is Part.MISSED:
            self._committer.miss(plan, verdict.reason)
        state.looks.clear()
        state.silent = plan if is_silent else None
        state.take_answer(rank.plan, rank.saved.identity, due=self._place.boundary(plan.opened_at))
        self._settle()
        return True

    def _examine(self, plan: SetPlan, saved: Saved, waited_s: float) -> AnsweringRank:
        """Brings together what there is to judge. A layout of another rank counts more than what was named in an attempt before."""
        if plan.layout and saved.word is not None and not saved.word.count:
            saved = replace(saved, word=None)
        if saved.word is not None and plan.rank == self._place.rank:  # it went on while the plan was written
            plan = replace(plan, step=max(plan.step, saved.word.step))
        shards = self._recogniser.find_shards(saved, plan)
        return AnsweringRank(
            plan=plan,
            place=self._place,
            saved=saved,
            shards=shards,
            doubt=self._find_doubt(plan, saved, shards, waited_s) if saved.word is None else "",
            is_saving=self._folder.is_saving,
            any_closed=self.state.closed_step >= 0,
            waited_s=waited_s,
            clock_is_right=self._is_clock_right(),
        )

    def _find_doubt(self, plan: SetPlan, saved: Saved, shards: Shards | None, waited_s: float) -> str:
        """Why what lies here may not be whole yet, or not of the plan's checkpoint, where no name says so; empty where it may."""
        resting, state, every_s = self._recogniser.resting, self.state, self._place.every_s
        is_over, due_s = math.isinf(waited_s), self._now() - state.due
        if self._is_bench:
            unrest = resting.find_unrest(saved.own, saved.changes, saved.at, every_s=every_s, waited_s=waited_s)
            return "" if is_over else unrest
        if shards is not None:
            again = any(one.place == plan.place and one.named_at != plan.named_at for one in state.plans.values())
            taken = (one.path for one in saved.own if one.path in shards.files and resting.has_taken(one))
            if again and plan.rank != self._place.rank and (stale := min(taken, default="")):
                return f"{stale} is still of the checkpoint before"
            return shards.reason
        if plan.names > 0:
            return ""
        if not is_over:
            late = waited_s > every_s / 2 or due_s > every_s
            return resting.find_doubt(
                saved.own, saved.changes, saved.at, every_s=every_s, due_s=due_s, late=late,
                is_saving=lambda: self._recogniser.is_saving(saved.at),
            )  # fmt: skip
        if saved.recognised.layout:
            return "no rank says which checkpoint is whole"
        doubt, torn = resting.find_doubt_at_end(saved.own, saved.changes, saved.at)
        return doubt if torn or state.restored is not None or state.closed_step >= 0 else ""

    def _replan(self, rank: AnsweringRank) -> AnsweringRank:
        """The rank with a plan of what lies here now. One that other ranks have read stays, and so does one in whose place nothing is
        whole."""
        saved = self._recogniser.read()
        if self._place.ranks > 1 or saved.named is None:
            return rank
        return self._examine(self._plan(rank.plan.number, saved), saved, rank.waited_s)

    def _is_clock_right(self) -> bool:
        """Whether this machine's clock agrees with AWS's."""
        return abs(self._clock() - self._now()) < CLOCK_S

    def _settle(self) -> None:
        self._thinning.thin(self._closer.settle(), self.state.newest)

    def _observe(self, now: float) -> None:
        """Looks at the folder also while no set is due: a log is known as one by the time of the first. Takes an answer back where what it
        was about came after this rank had answered without any: its trainer's word, or shards."""
        state, word, plan = self.state, self._recogniser.word, self.state.silent
        if plan is not None and self._place.rank in find_spare(self._place, plan.number):
            plan = state.silent = None  # the set is whole without it
        if plan is not None and word is not None:
            if word.step <= plan.step:
                self._committer.take_back(plan, f"it named checkpoint {word.step} only after it had answered")
            state.silent = None
        if not state.is_time("folder between sets", now, min(OBSERVE_S, self._place.every_s / 4)):
            return
        with suppress(Changed):
            saved, plan = self._recogniser.read(), state.silent
            shards = self._recogniser.find_shards(saved, plan) if plan else None
            if plan and shards and shards.files:
                came_at = min(saved.changes.get(path, 0.0) for path in shards.files)
                if came_at - plan.opened_at < LATE_S:
                    self._committer.take_back(plan, f"files of {plan.name or 'its checkpoint'} came later")
                    state.silent = None
