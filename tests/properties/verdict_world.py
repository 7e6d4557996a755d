"""A pure world around the attendant's judgement: nodes with true fates, a table that is late or away, an EC2 that is stale.

Nodes train in lockstep: a trainer whose peer is gone breaks after a delay, or hangs for ever. What the attendant sees is what
arrived; what really happened is known to the oracle alone (tests/properties/verdict_oracle.py). The nodes are in
tests/properties/verdict_nodes.py; here is what wakes the attendant and what its look meets.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from attendant.acting import give_order
from attendant.facts import AttemptFacts
from attendant.passes import A_LOOK_S
from attendant.policy import Action, Verdict, judge
from attendant.silence import list_gaps
from attendant.triggers import LOOKS_A_REPORT
from aws.facts import Instance, Pass, Seen
from aws.heard import heard
from contract.errors import Stalled
from contract.orders import Order, OrderKind
from contract.reports import Exit, NodeReport, Phase
from contract.sessions import AttemptSessions
from tests.builders import JOB, NODE_ROLE, NOW
from tests.fakes.functions import TIMEOUTS
from tests.properties.verdict_nodes import NEVER, STALL_S, Nodes
from tests.properties.verdict_oracle import allowed_ends
from tests.properties.verdict_table import Away

CLOCK_S, STEP_S = 60.0, 0.5
AGAIN_S = JOB.timing.report_every_s / LOOKS_A_REPORT
STREAM_S = (0.2, 5.0)
TRIES, TRY_S = 3, 1.0
"""So often, and after such a pause, the stream brings a record to an attendant that fails."""


@dataclass
class VerdictWorld(Nodes):
    """One attempt, from its launch to its verdict."""

    stream_late_s: float = 0.0
    """So much later the stream's records come."""
    records_lost: bool = False
    """The stream's records are given up."""
    attendant_dead_until: float = 0.0
    ec2_silent: bool = False
    """In the next look."""
    ended_at: float = NEVER
    _pass: tuple[float, tuple[float, ...]] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.forgotten = set[str]()
        """Ids that EC2 does not know in the next look."""
        self.verdict: Verdict | None = None
        self.later(self.chance.uniform(0, CLOCK_S), self._clock)

    def is_over(self) -> bool:
        return self.verdict is not None

    # What befalls the attempt from outside

    def order_by_attendant(self, error: str) -> None:
        """As it does near the deadline."""
        if self.table.created is None and not self.table.is_away:
            by = int(self.now) + 120
            order = Order(
                kind=OrderKind.CHECKPOINT_AND_STOP, error=error, reason="it was time.", by=by, author="attendant"
            )
            self.table.create_order(self.job, 1, order)
            self._act(self.table.seen(self._date()), Verdict(action=Action.ORDER, reason="", order=order))

    def lie(self, rank: int, instance: str, attempt: int) -> None:
        """Another instance's item speaks of a rank, with the highest number."""
        report = NodeReport(
            job=JOB.id, attempt=attempt, rank=rank, instance=f"i-{rank}", phase=Phase.ENDED, sent_at=0.0,
            sequence=10**6, exit=Exit(code=1, error="TrainingFailed"), timeline={"started": 1.0},
        )  # fmt: skip
        self.table.lies.append((instance, report))

    # What wakes the attendant

    def _clock(self) -> None:
        self.later(CLOCK_S * self.chance.uniform(0.95, 1.05), self._clock)
        if self._works():
            self._pass = self.now, list_gaps(self._last_pass())
            self._judge_attempt(self._pass[1], lambda _: None)

    def wake(self, instance: str) -> None:
        """The stream has a record of an urgent report: late, sometimes twice, and lost where the attendant is dead for long."""
        for _ in range(self.chance.choice([1, 1, 1, 2])):
            if not self.records_lost:
                self.later(self.chance.uniform(*STREAM_S) + self.stream_late_s, partial(self._record, instance, TRIES))

    def _record(self, instance: str, tries: int) -> None:
        if self._works():
            self._judge_attempt(list_gaps(self._last_pass()), lambda verdict: self._hand_over(instance, verdict))
        elif tries > 1:
            self.later(TRY_S, lambda: self._record(instance, tries - 1))

    def _hand_over(self, instance: str, verdict: Verdict) -> None:
        if verdict.awaits == instance:
            until = self.now + TIMEOUTS["attendant"] - AGAIN_S - A_LOOK_S
            self.later(AGAIN_S, lambda: self._look_again(instance, until))

    def _look_again(self, instance: str, until: float) -> None:
        def then(verdict: Verdict) -> None:
            if verdict.awaits == instance and self.now < until:
                self.later(AGAIN_S, lambda: self._look_again(instance, until))

        if self._works():
            self._judge_attempt(list_gaps(self._last_pass()), then)

    def _works(self) -> bool:
        return not self.table.is_away and self.now >= self.attendant_dead_until

    def _last_pass(self) -> Pass | None:
        return None if self._pass is None else Pass(age_s=self.now - self._pass[0], gaps_s=self._pass[1])

    # A look: the time, then the instances, then the reports, then the order, and others' looks between any two

    def _judge_attempt(self, gaps_s: tuple[float, ...], then: Callable[[Verdict], None]) -> None:
        began, instances = self.now, None if self.ec2_silent else self._described()
        self.ec2_silent = False
        self.forgotten.clear()

        def read_reports() -> None:
            if self._works():
                seen, allowed = self.table.seen(self._date()), allowed_ends(self)
                self.later(self.chance.uniform(0, STEP_S), lambda: read_order(seen, allowed))

        def read_order(seen: list[Seen], allowed: set[str]) -> None:
            if self._works():
                facts = self._facts(seen, instances, gaps_s)
                verdict = judge(facts, now=began)
                if self._act(seen, verdict):
                    self._check(verdict, allowed | allowed_ends(self))
                    then(verdict)

        self.later(self.chance.uniform(0, STEP_S), read_reports)

    def _date(self) -> float:
        return float(math.floor(self.now))

    def _facts(
        self, seen: list[Seen], instances: dict[str, Instance] | None, gaps_s: tuple[float, ...] | None
    ) -> AttemptFacts:
        ids = tuple(node.id for node in self.all)
        return AttemptFacts(
            job=self.job,
            attempt=1,
            launched_at=NOW,
            ids=ids,
            instances=instances,
            nodes=heard(seen, job=JOB.id, attempt=1, ids=ids),
            order=self.table.order(JOB.id, 1, now=self.now),
            gaps_s=gaps_s,
            sessions=AttemptSessions(since=NOW, until=NOW + 3600),
        )

    def _act(self, seen: list[Seen], verdict: Verdict) -> bool:
        """Gives the order, as a look does before it sends the verdict. False where the function dies meanwhile."""
        stood_s = self.now - self.moved_at
        if verdict.order is not None and verdict.order.error == Stalled.__name__ and stood_s < STALL_S:
            self.wrong.append(f"stalled, and a step was finished {stood_s:.0f} s ago")
        state: Any = self.table
        try:
            give_order(state, NODE_ROLE, self._facts(seen, None, None), verdict.order, clock=lambda: self.now)
        except Away:
            return False
        return True

    def _check(self, verdict: Verdict, allowed: set[str]) -> None:
        if verdict.action not in {Action.FAIL, Action.SUCCEED}:
            return
        self.verdict, self.ended_at = verdict, self.now
        if (verdict.error or "success") not in allowed:
            said = verdict.error or "success"
            self.wrong.append(f"{said}, and the oracle says {sorted(allowed)}: {verdict.reason}")

    def _described(self) -> dict[str, Instance]:
        return {
            node.id: Instance(
                id=node.id,
                region="eu-central-1",
                rank=node.rank,
                address="",
                launched_at=NOW,
                state="shutting-down" if self.now >= node.ec2_tells_at else "running",
            )
            for node in self.all
            if node.id not in self.forgotten
        }
