"""Runs the child of one line: does what the policy decides, and remembers the result."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from contract import records
from contract.codec import decode, encode
from contract.grid import ExitCode, Record
from contract.records import LineFacts
from contract.timings import ChildTiming
from grid_child.backends import backend_of, watch_s
from grid_child.plan import Work
from grid_child.policy import LONGEST_S, Action, ChildFacts, ChildRules, Known, SubmitAnswer, decide
from grid_child.retry import Retry
from grid_child.store import Home
from grid_child.trouble import Trouble
from grid_child.waits import Waits

STOPPED = "the grid is ending"
RECORDED = "its line already has a record"


class Child:
    """The child of one line. `run` and `end` return the exit code of the process."""

    def __init__(
        self,
        work: Work,
        *,
        home: Home,
        timing: ChildTiming,
        waits: Waits,
        retry: Retry,
        chance: random.Random,
        submitted: bool,
        print_: Callable[[str], Any] | None = None,
    ) -> None:
        """`submitted`: an earlier attempt or round may have created the training."""
        self.work, self.home, self.waits, self.chance = work, home, waits, chance
        self.backend = backend_of(work, home, waits.time)
        self.timing, self._retry, self._print = timing, retry, print_ or _print
        self.rules = ChildRules(
            timing=timing,
            earliest=work.earliest,
            turn_s=work.turn_s,
            leaves_at=waits.time() + LONGEST_S,
            watch_s=watch_s(work, timing.training_watch_s),
            service=self.backend.service,
        )
        self._submitted = submitted
        self.facts = ChildFacts(known=Known.UNKNOWN if submitted else Known.ABSENT)
        self._seen: LineFacts | None = None
        """What was last known of a training of ours."""
        self._told: dict[str, tuple[str, ...]] = {}

    def run(self) -> ExitCode:
        """Works until the line has its record, or this child cannot do more. Raises Unfit, Trouble, Terminated."""
        if (stands := self._standing()) is not None:
            return self._leave_it(stands)
        while True:
            verdict = decide(self.facts, self.rules, self.waits.time(), self.chance)
            if verdict.action not in {Action.LOOK, Action.RECORD}:
                self._tell("next", verdict.action.value, verdict.reason)
            self.waits.sleep(verdict.wait_s)
            match verdict.action:
                case Action.LOOK:
                    self._read_training()
                case Action.CREATE:
                    self._create()
                case Action.STOP:
                    self._stop()
                case Action.RECORD:
                    return self._record_end()
                case Action.REFUSE:
                    if self._refuse(verdict.reason):
                        return ExitCode.DONE
                case Action.LEAVE:
                    return verdict.exit

    def end(self, reason: str, until: float) -> ExitCode:
        """Stops the training because a call ended this child's job, and records it if it ends before `until`."""
        self.facts = replace(self.facts, unwanted=reason, stopping=False, troubles=0)
        pause = self.timing.stop_grace_s / 15
        while True:
            self._read_training()
            if self.facts.known is Known.OURS and self._has_ended:
                return self._record_end()
            if self.facts.known in {Known.ABSENT, Known.STRANGER}:
                return ExitCode.FINAL
            if self.facts.known is Known.OURS and not self.facts.stopping:
                self._stop()
            if self.waits.time() + pause >= until:
                return ExitCode.AGAIN
            self.waits.sleep(pause)

    def _read_training(self) -> None:
        """Reads the training's state, and once whose it is unless this child's own submission was accepted."""
        try:
            seen = self.backend.find()
            if seen is None:
                self.facts = replace(self.facts, known=Known.ABSENT, troubles=0)
                return
            known, holder = self.facts.known, ""
            if known is not Known.OURS:
                holder = self.backend.name_stranger(seen)
                known = Known.STRANGER if holder else Known.OURS
        except Trouble as trouble:
            self._tell("trouble", "", str(trouble))
            self.facts = replace(self.facts, troubles=self.facts.troubles + 1)
            return
        if known is Known.OURS:
            self._seen = seen
            self._tell("training", seen.detail, seen.said)
        new = known is not self.facts.known
        self.facts = replace(self.facts, known=known, status=seen.status, holder=holder, troubles=0)
        if new and known is Known.OURS and not seen.ended:
            self._fence()

    @property
    def _has_ended(self) -> bool:
        return self._seen is not None and self._seen.ended

    def _record_end(self) -> ExitCode:
        assert self._seen is not None, "only a training that was seen has ended"
        return self._record(records.record_of(self.work.line, self._seen))

    def _create(self) -> None:
        """Submits the training, unless the grid is ending."""
        self._fence()
        if self.facts.unwanted:
            return
        self.waits.check()
        answer, said = self.backend.create()
        self._tell("submission", answer.value, said)
        now, before = self.waits.time(), self.facts
        if answer is SubmitAnswer.ACCEPTED:
            self.facts = replace(before, answer=answer, known=Known.OURS, status="InProgress")
            self._fence()
            return
        self.facts = replace(
            before,
            known=Known.UNKNOWN if answer in {SubmitAnswer.OPEN, SubmitAnswer.IN_USE} else before.known,
            answer=answer,
            said=said,
            tries=before.tries + 1 if answer is before.answer else 1,
            since=before.since or now,
        )

    def _fence(self) -> None:
        """Checks, before a submission and again after it, whether the grid is ending or the line has its record already.

        Whoever ends the grid, or refuses the line, first writes that and then looks for a training. So one of the two sees the other.
        """
        if self.facts.unwanted:
            return
        if self.home.exists(self.work.prefix.stopped):
            self.facts = replace(self.facts, unwanted=STOPPED)
        elif self.facts.known is Known.OURS and self._standing() is not None:
            self.facts = replace(self.facts, unwanted=RECORDED)

    def _standing(self) -> Record | None:
        body = self.home.read(self.work.prefix.record(self.work.line.index))
        return None if body is None else decode(Record, body)

    def _leave_it(self, record: Record) -> ExitCode:
        """Ends because the line has its record. Stops a training that the record does not name: an earlier child may have been
        killed just after it created one."""
        if self._submitted and not record.arn and self._ours_after_all() and not self._has_ended:
            self._retry(self.backend.stop)
        self._say("has its record", outcome=record.outcome.value)
        return ExitCode.DONE

    def _stop(self) -> None:
        try:
            self.backend.stop()
        except Trouble as trouble:
            self._tell("trouble", "", str(trouble))
            self.facts = replace(self.facts, troubles=self.facts.troubles + 1)
        else:
            self.facts = replace(self.facts, stopping=True, troubles=0)

    def _record(self, record: Record) -> ExitCode:
        first = self.home.create(self.work.prefix.record(record.index), encode(record))
        event = "recorded" if first else "has its record"
        self._say(event, outcome=record.outcome.value, reason=record.reason)
        return ExitCode.DONE

    def _refuse(self, reason: str) -> bool:
        """Records that there will be no training; False where there is one after all.

        A second child of the line may submit at this moment. It looks for a record after its submission, and this one looks for a
        training after its record, so one of the two sees the other and stops the training.
        """
        strange = self.facts.known is Known.STRANGER
        if not strange and self._ours_after_all():
            return False
        self._record(records.refused(self.work.line, reason))
        if not strange and self._ours_after_all() and not self._has_ended:
            self._retry(self.backend.stop)
        return True

    def _ours_after_all(self) -> bool:
        def found() -> bool:
            seen = self.backend.find()
            if seen is None or self.backend.name_stranger(seen):
                return False
            self._seen = seen
            self.facts = replace(self.facts, known=Known.OURS, status=seen.status)
            return True

        return self._retry(found)

    def _tell(self, event: str, state: str, message: str) -> None:
        """Logs an event where its state or message is new."""
        if (state, message) != self._told.get(event):
            self._told[event] = (state, message)
            self._say(event, state=state, message=message)

    def _say(self, event: str, **fields: str) -> None:
        line = self.work.line
        told = {
            "grid": self.work.grid.id,
            "line": line.index,
            "region": line.region,
            "training": line.training,
            "event": event,
        }
        self._print(json.dumps(told | {name: one for name, one in fields.items() if one}, ensure_ascii=False))


def _print(line: str) -> None:
    print(line, file=sys.stdout, flush=True)
