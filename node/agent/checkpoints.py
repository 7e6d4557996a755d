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
from agent.progress import ProgressFile
from agent.sets.answering import Answer, Now, RankEnding, answer, answer_last, answer_place, newer_than
from agent.sets.closing import Closer, NeverWhole
from agent.sets.committing import Committer, is_right
from agent.sets.opening import OTHERS_FIRST, poll_s, waits_for_next
from agent.sets.recognising import Recogniser, Saved, identify
from agent.sets.state import SetState
from agent.snapshot import Changed, FileState
from agent.store import Store
from agent.thinning import Thinning
from contract.codec import decode, encode
from contract.commits import Commit, Part, SetPlan
from contract.keys import LAST_SET, BytesPrefix

OBSERVE_S = 10.0
"""Between two looks at which files of the folder only grow, where the interval is not shorter."""
LATE_S = 120.0
"""What a rank writes into a checkpoint so long after its set was opened is something else."""
LAST_WAIT_S = 10.0
"""For so long a rank with shards waits for the rank that knows which checkpoint is whole, once their trainers have ended."""


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
        self._recogniser = Recogniser(
            folder, progress, layout=place.job.checkpoint_layout.value, clock=clock, changed_s=changed_s, note=note
        )
        self._closer = Closer(place, store, self.state, now=now, note=note)
        self._thinning = Thinning(store, folder, job=place.job.id, rank=place.rank, now=now, note=note)
        self._committer = Committer(
            place, store, folder, self._recogniser, self._thinning, note=note, now=now, clock=clock, sleep=sleep
        )

    @property
    def newest(self) -> Commit | None:
        """This rank's newest part of a set."""
        return self._committer.newest

    @property
    def newest_key(self) -> str:
        return self._committer.newest_key

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
        self.state.restored, self.state.answered, self.state.has_older = step, saved.identity, True

    def tick(self) -> bool:
        """Does what there is to do now, which mostly is nothing; whether it answered a set. Raises what a commit raises, and NeverWhole."""
        if self._place.rank >= self._place.ranks:
            return False
        now, state = self._now(), self.state
        self._retract()
        if state.unsettled:
            self._settle()
        self._observe(now)
        if now < state.due:
            return False
        if state.plan is None:
            state.plan, state.seen_at = self._find(now) or self._open(now), now
        return state.plan is not None and self._answer(state.plan, now)

    def finish(self, *, ended_well: bool = False, ended_at: float | None = None) -> bool:
        """Answers the last set, after the training process has ended; whether it did. Raises what a commit raises. A command that has
        ended well, by itself and with 0, has written what it wanted: all that is there is of its last checkpoint. `ended_at`: when it
        ended, by this machine's clock; None for now."""
        if self._place.rank >= self._place.ranks:
            return False
        self._retract()
        state, died_at = self.state, self._clock() if ended_at is None else ended_at
        saved = self._recogniser.read(math.inf if ended_well else died_at)
        if self._place.ranks == 1 and not saved.own:
            return False
        state.number = LAST_SET
        plan = self._plan_last(saved, ended_well=ended_well)
        if plan.names and not plan.layout and plan.rank != self._place.rank:  # another rank's trainer names it for all
            self._recogniser.give_way()
            saved = self._recogniser.read(died_at)
            plan = self._plan(LAST_SET, saved, self._now())
        state.plans[LAST_SET] = plan
        self._say_answer(
            plan, saved, self._judge_end(plan, saved, died_at, ended_well=ended_well), ended_well=ended_well
        )
        with suppress(NeverWhole):
            self._settle()
        return True

    # Opening

    def _find(self, now: float) -> SetPlan | None:
        """The plan of the next set, if another rank has written it. Asks seldom, and at once where this rank's trainer has a new name."""
        word, state = self._recogniser.word, self.state
        heard, state.heard = state.heard, identify(word) if word else ""
        if self._place.ranks == 1 or (now < state.next_poll and heard == state.heard):
            return None
        state.next_poll = now + poll_s(now - state.due, self._place.every_s)
        return self._read_plan(state.number)

    def _read_plan(self, number: int) -> SetPlan | None:
        """Asks for the key first: a request for an object that is not there counts as denied, because a job may list only its own keys."""
        key = self._keys.plan(self._place.attempt, number)
        return decode(SetPlan, self._store.get(key)) if key in self._store.keys(key) else None

    def _open(self, now: float) -> SetPlan | None:
        """Opens the next set if this rank has something new; the plan that then holds, which may be another rank's."""
        word, state = self._recogniser.word, self.state
        if word is not None and (word.count or not self.layout):
            clock, scope = self._clock(), self._place.job.checkpoint_scope
            if identify(word) in (state.passed, state.answered):
                return None
            if self._place.ranks > 1 and waits_for_next(
                word, clock, state.due + clock - now, self._place.every_s, scope
            ):
                return None
        elif now < state.next_walk:
            return None
        else:
            state.next_walk = now + poll_s(now - state.due, self._place.every_s)
        saved = self._recogniser.read()
        return self._write_plan(self._plan(state.number, saved, now)) if self._is_ready(saved, now) else None

    def _is_ready(self, saved: Saved, now: float) -> bool:
        """Whether to open a set with what lies here. A trainer that names its checkpoints, or whose layout shows them, may be on any rank;
        files that nothing names are looked at on rank 0 alone."""
        state, alone = self.state, self._place.ranks == 1
        if saved.identity == state.passed or (saved.identity == state.answered and not self._was_missed()):
            return False
        if saved.word is not None:
            if newer_than(saved.changes, saved.word.at) or (alone and not saved.own):
                state.passed = saved.identity  # the next one is taken as soon as it is named
                return False
        elif saved.found is None and (self._place.rank != 0 or not self._opens_unnamed(saved, now)):
            return False
        return not self._is_open(now)

    def _opens_unnamed(self, saved: Saved, now: float) -> bool:
        """Whether rank 0 opens a set although nothing says which checkpoint it has: where its new files rest; and where it has none, late,
        because others may have."""
        late_s, every_s = now - self.state.due, self._place.every_s
        if not saved.own:
            return self._place.ranks > 1 and late_s > OTHERS_FIRST * every_s
        if saved.recognised.layout:
            return False
        self.state.why = self._recogniser.resting.find_doubt(
            saved.own, saved.changes, saved.at, every_s=every_s, late=late_s > every_s
        )
        return not self.state.why

    def _was_missed(self) -> bool:
        """Whether a rank missed the set of the checkpoint that lies here, or took back what it had answered. Where a layout keeps that
        checkpoint in its place, it can be in the next set."""
        state = self.state
        last = state.plans.get(state.number - 1)
        if last is None or not last.layout or last.number <= state.closed_number:
            return False
        parts = self._closer.settle(self.newest).parts(self._place.attempt, last.number)
        return Part.MISSED in parts.values()

    def _is_open(self, now: float) -> bool:
        """Whether ranks still work on the set before, and have time to."""
        state = self.state
        if self._place.ranks == 1 or state.number == 1 or now > state.due + self._place.patience_s:
            return False
        if now < state.next_settle:
            return True
        state.next_settle = now + poll_s(now - state.due, self._place.every_s)
        return len(self._closer.list_history().parts(self._place.attempt, state.number - 1)) < self._place.ranks

    def _plan(self, number: int, saved: Saved, now: float) -> SetPlan:
        named, whole = saved.named, saved.whole
        return SetPlan(
            number=number,
            step=self._step(saved),
            names=named.count if named else 0,
            named_at=named.at if named and self._clock_is_right(now) else 0.0,
            opened_at=now,
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
        known = self._recogniser.step
        return self.state.restored if known < 0 else known

    # Answering

    def _answer(self, plan: SetPlan, now: float) -> bool:
        word, state, waited_s = self._recogniser.word, self.state, now - self.state.seen_at
        if (word is None or not word.count) and now < state.next_answer:
            return False
        if word is not None and word.count and word.step < plan.step and waited_s <= self._place.patience_s:
            return False
        if plan.names and not plan.layout and plan.rank != self._place.rank:
            self._recogniser.give_way()
        saved = self._recogniser.read()
        if plan.layout and saved.word is not None and not saved.word.count:
            saved = replace(saved, word=None)  # what was restored was named; what is here now is recognised
        verdict = self._judge(plan, saved, waited_s, now)
        if verdict.now is Now.WAIT:
            state.next_answer, state.why = now + poll_s(waited_s, self._place.every_s), verdict.reason
            return False
        silent = plan.names > 0 and saved.named is None and (not plan.layout or verdict.now is Now.NOTHING)
        plan, saved = self._say_answer(plan, saved, verdict)
        state.silent = plan if silent else None
        state.take_answer(plan, saved.identity, due=self._place.boundary(plan.opened_at))
        self._settle()
        return True

    def _judge(self, plan: SetPlan, saved: Saved, waited_s: float, now: float) -> Answer:
        scope, every_s, patience_s = self._place.job.checkpoint_scope, self._place.every_s, self._place.patience_s
        shards, right = self._recogniser.find_shards(saved, plan), self._clock_is_right(now)
        if saved.word is not None and plan.rank == self._place.rank:  # it went on while the plan was written
            plan = replace(plan, step=max(plan.step, saved.word.step))
        times = {"waited_s": waited_s, "every_s": every_s, "patience_s": patience_s}
        if saved.has_left(plan):
            return Answer(Now.MISS, f"its trainer had gone on from {plan.name} when it learned of that")
        if shards is not None and saved.word is None:
            stale, beside = self._find_stale(plan, saved, shards), bool(saved.choose(plan, shards))
            return answer_place(
                plan, shards, saved.changes, beside=beside, opened=plan.rank == self._place.rank, stale=stale, scope=scope,
                clock_is_right=right, **times,
            )  # fmt: skip
        files = {one.path: saved.changes.get(one.path, 0.0) for one in saved.choose(plan, shards)}
        own = {path: at for path, at in saved.changes.items() if path in files}
        doubt = self._recogniser.resting.find_doubt(
            saved.own, saved.changes, saved.at, every_s=every_s, late=waited_s > every_s / 2
        )
        return answer(
            plan, saved.word, own, empty=self._folder.is_empty, doubt=doubt, scope=scope, clock_is_right=right, **times
        )

    def _find_stale(self, plan: SetPlan, saved: Saved, shards: Shards) -> str:
        """A file in a place that had another checkpoint before, and has not changed since; empty where there is none."""
        before = [one for one in self.state.plans.values() if one.place == plan.place and one.named_at != plan.named_at]
        if not before or plan.rank == self._place.rank:
            return ""
        old = (one.path for one in saved.own if one.path in shards.files and self._recogniser.resting.has_taken(one))
        return min(old, default="")

    def _judge_end(self, plan: SetPlan, saved: Saved, died_at: float, *, ended_well: bool) -> Answer:
        shards, doubt = self._recogniser.find_shards(saved, plan), ""
        if saved.word is None and not saved.recognised.layout:
            doubt, torn = self._recogniser.resting.find_doubt_at_end(saved.own, saved.changes, died_at)
            doubt = doubt if torn or self.state.has_older else ""
        ending = RankEnding(
            named=saved.word,
            newer=newer_than(saved.changes, saved.word.at) if saved.word else "",
            files=bool(saved.own if ended_well else saved.choose(plan, shards)),
            shards=shards if saved.word is None else None,
            unplanned=bool(saved.word is None and saved.recognised.layout and not plan.layout),
            doubt=doubt,
            any_closed=self.state.closed_step >= 0,
            saving=self._folder.is_saving,
        )
        return answer_last(ending, ended_well=ended_well)

    def _plan_last(self, saved: Saved, *, ended_well: bool) -> SetPlan:
        """The plan of the last set. Each rank knows its own, but where a layout shows the checkpoint on one rank for all."""
        own = self._plan(LAST_SET, saved, self._now())
        if ended_well and saved.whole is not None:
            return own
        if saved.word is not None and not ended_well:
            self._write_plan(own)
        if ended_well or saved.word is not None:
            return replace(own, names=0, named_at=0.0, layout="", name="", needs=())
        if saved.whole is not None:
            return self._write_plan(own) or own
        until = self._now() + LAST_WAIT_S
        while saved.recognised.layout and self._place.ranks > 1:
            if found := self._read_plan(LAST_SET):
                return found
            if self._now() >= until:
                break
            self._sleep(1.0)
        return own

    def _say_answer(
        self, plan: SetPlan, saved: Saved, verdict: Answer, *, ended_well: bool = False
    ) -> tuple[SetPlan, Saved]:
        """Answers the set; its plan, and what was committed, both of which may be newer than what was seen before."""
        if verdict.now is Now.COMMIT:
            return self._committer.commit(plan, saved, lambda: self._replan(plan), ended_well=ended_well)
        if verdict.now is Now.NOTHING:
            self._committer.say(plan, Part.NOTHING, b"{}")
        else:
            self._committer.miss(plan, verdict.reason)
        return plan, saved

    def _replan(self, plan: SetPlan) -> SetPlan:
        """The plan with what lies here now; a plan that other ranks have read stays."""
        return self._plan(plan.number, self._recogniser.read(), self._now()) if self._place.ranks == 1 else plan

    def _retract(self) -> None:
        """Opens a set again that this rank had nothing for when it answered, and whose checkpoint its trainer has now: what it answered
        was not complete."""
        plan, state = self.state.silent, self.state
        word = self._recogniser.word
        if plan is None or word is None:
            return
        state.silent = None
        if word.step <= plan.step:
            self._closer.reopen(plan, f"it named checkpoint {word.step} later")

    def _settle(self) -> None:
        self._thinning.thin(self._closer.settle(self.newest), self.newest)

    def _observe(self, now: float) -> None:
        """Looks at the folder also while no set is due: a log is known as one by the time of the first, and shards that came after this
        rank had answered without any are found."""
        state = self.state
        if now < state.next_observe:
            return
        state.next_observe = now + min(OBSERVE_S, self._place.every_s / 4)
        with suppress(Changed):
            saved, plan = self._recogniser.read(), state.silent
            shards = self._recogniser.find_shards(saved, plan) if plan else None
            late_s = (
                min((saved.changes.get(path, 0.0) for path in shards.files), default=0.0) - plan.opened_at
                if plan and shards
                else 0.0
            )
            if plan and shards and shards.files and late_s < LATE_S:
                state.silent = None
                self._closer.reopen(plan, f"files of {plan.name or 'its checkpoint'} came later")

    def _clock_is_right(self, now: float) -> bool:
        return is_right(self._clock(), now)
