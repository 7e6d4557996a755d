"""A pure world around the attendant's judgement: nodes with true fates, an S3 that is late or away, an EC2 that is stale.

Nodes train in lockstep: a trainer whose peer is gone breaks after a delay, or hangs for ever. What the attendant sees is what
arrived; what really happened is known to the oracle alone:

1. A cause is an error of the code, a node that went away, or an order. A trainer that broke because a peer was gone is an effect.
2. An error of which no report ever arrived, because its node went away first, is a node that went away; an order of which nobody
   was told is none.
3. An order names the end, unless an error of the code came before it.
4. An error of the code names the end (TrainingFailed) if every other node has told its end, or was heard after the error.
5. Otherwise a node that went away names it: NodeLost, or the order's error where there is an order.
6. A node that went away after it had told how its work ended is not lost.
7. Where two moments are closer than S3 can tell (whole seconds, and a report's way there), either may come first.
8. With no cause at all nothing ends but by success: not by an S3 that is away from everybody, not by a look in which EC2 does not know a
   node, not by a late report, a stranger's report, or a clock that is five minutes off.
9. Success is that every node told an exit with 0.
10. Whatever happens, there is an end.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from attendant.facts import AttemptFacts
from attendant.policy import Action, Verdict, judge
from attendant.silence import gaps
from aws.facts import Given, Instance, Pass, Seen
from aws.heard import heard
from contract.keys import JobPrefix
from contract.orders import Order, OrderKind
from contract.reports import Exit, NodeReport, Phase
from tests.builders import JOB, NOW

CLOCK_S, ORDERS_S, AGAIN_S = 60.0, 5.0, 7.5
CLOSE_S = 4.0
"""S3 tells whole seconds, the attendant leaves two, and a report takes a second."""
KEYS = JobPrefix(JOB.id)
NEVER = math.inf


@dataclass
class Node:
    """A machine, its agent and its trainer, as they really are."""

    rank: int
    skew_s: float
    heard_to: float = NEVER
    """Nothing of it reaches S3 from then on."""
    ec2_tells_at: float = NEVER
    frozen_until: float = 0.0
    slow_s: float = 0.0
    """How much longer its reports take."""
    booted: bool = False
    trains: bool = False
    over_at: float = NEVER
    """When its trainer's work was over."""
    report: NodeReport | None = None
    entered_at: float = 0.0
    busy_until: float = 0.0
    arrived_at: float = -NEVER
    """When S3 last took a report of it."""
    told_end: bool = False

    @property
    def id(self) -> str:
        return f"i-{self.rank}"


@dataclass
class VerdictWorld:
    """One attempt, from its launch to its verdict."""

    nodes: int
    seed: int
    now: float = NOW
    away_until: float = 0.0
    """S3 answers nobody."""
    nodes_away_until: float = 0.0
    """S3 answers the functions, and no node."""
    events_lost: bool = False
    attendant_dead_until: float = 0.0
    forgotten: set[str] = field(default_factory=set)
    """Ids that EC2 does not know in the next look."""
    ec2_silent: bool = False
    """In the next look."""
    order: tuple[Order, float] | None = None
    own_order: Order | None = None
    """Of a node that could not write it down."""
    own_order_told: bool = False
    objects: dict[str, tuple[NodeReport, float]] = field(default_factory=dict)
    errors: list[tuple[float, int]] = field(default_factory=list)
    """When the code failed by itself, and where."""
    losses: list[tuple[float, int]] = field(default_factory=list)
    verdict: Verdict | None = None
    ended_at: float = NEVER
    wrong: list[str] = field(default_factory=list)
    _pass: tuple[float, tuple[float, ...]] | None = None
    _due: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _number: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.job = replace(JOB, nodes=self.nodes)
        self.all = [Node(rank, self.chance.choice([0.0, 0.0, -300.0, 300.0])) for rank in range(self.nodes)]
        for node in self.all:
            self.later(self.chance.uniform(20, 60), lambda node=node: self._boot(node))  # type: ignore[misc]
        self.later(self.chance.uniform(0, CLOCK_S), self._clock)

    # Time

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now + seconds, next(self._number), action))

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self.verdict is None and self._due and self._due[0][0] <= until:
            self.now, _, action = heapq.heappop(self._due)
            action()
        self.now = max(self.now, until)

    # What nodes do

    def training(self) -> list[Node]:
        return [node for node in self.all if node.trains and node.over_at == NEVER and not self._gone(node)]

    def _gone(self, node: Node) -> bool:
        return node.heard_to <= self.now

    def _boot(self, node: Node) -> None:
        if not self._gone(node):
            node.booted = node.trains = True
            node.entered_at = self.now
            node.report = NodeReport(
                job=JOB.id, attempt=1, rank=node.rank, instance=node.id, phase=Phase.TRAINING, sent_at=0.0,
                timeline={"started": self.now + node.skew_s},
            )  # fmt: skip
            self._tick(node)
            self._look_for_orders(node)

    def _tick(self, node: Node) -> None:
        if not self._gone(node) and node.report and node.report.exit is None:
            if self.now >= node.frozen_until:
                self._send(node)
            self.later(JOB.timing.report_every_s, lambda: self._tick(node))

    def _send(self, node: Node, *, urgent: bool = False, last: bool = False) -> None:
        """One report after the other; each is on its way for a while."""
        if self._gone(node) or node.report is None:
            return
        if (wait := max(node.busy_until, node.frozen_until) - self.now) > 0:
            self.later(wait, lambda: self._send(node, urgent=urgent, last=last))
            return
        since = node.over_at if node.report.outcome else self.now
        node.report = replace(
            node.report, sequence=node.report.sequence + 1, sent_at=self.now + node.skew_s,
            phase_s=self.now - node.entered_at, failed_s=self.now - since,
        )  # fmt: skip
        report, way_s = node.report, self.chance.uniform(0.02, 1.0) + node.slow_s
        node.busy_until = self.now + way_s
        self.later(way_s, lambda: self._arrive(node, report, urgent=urgent, last=last))

    def _arrive(self, node: Node, report: NodeReport, *, urgent: bool, last: bool) -> None:
        if self._gone(node):
            return
        if self.now < max(self.away_until, self.nodes_away_until):
            if urgent or last:
                self.later(self.chance.uniform(1, 20), lambda: self._send(node, urgent=urgent, last=last))
            return
        node.arrived_at = self.now
        self.own_order_told |= report.order is not None and report.order is self.own_order
        node.told_end = node.told_end or (report.exit or report.outcome) is not None
        self.objects[KEYS.report(1, node.rank)] = report, self.now
        if urgent:
            self.objects[KEYS.urgent(1, node.rank)] = report, self.now
            if not self.events_lost:
                self.later(self.chance.uniform(0.5, 3), lambda: self._look_again(45.0))
        if last:
            node.heard_to = node.ec2_tells_at = self.now  # it powers itself off

    def _look_for_orders(self, node: Node) -> None:
        if node in self.training():
            if self.now >= node.frozen_until and self._order_of(node) and node.report and node.report.order is None:
                self._obey(node)
            self.later(ORDERS_S, lambda: self._look_for_orders(node))

    def _order_of(self, node: Node) -> Order | None:
        if self.own_order is not None and self.own_order.author == f"rank {node.rank}":
            return self.own_order
        away = self.now < max(self.away_until, self.nodes_away_until)
        return self.order[0] if self.order is not None and not away else None

    def _obey(self, node: Node) -> None:
        assert node.report is not None
        node.report = replace(node.report, order=self._order_of(node))
        self.later(self.chance.uniform(0.1, 30), lambda: self._over(node, 143))

    def _over(self, node: Node, code: int) -> None:
        """The trainer's end, by itself or because something broke."""
        if node not in self.training() or node.report is None:
            return
        if (wait := node.frozen_until - self.now) > 0:
            self.later(wait, lambda: self._over(node, code))
            return
        node.over_at = node.entered_at = self.now
        order = node.report.order or (self._order_of(node) if code else None)
        end = Exit(code=code, error="" if code == 0 else "TrainingFailed")
        if order is not None:
            end = Exit(code=code, error=order.error, reason=order.reason, ordered=True)
        timeline = {**node.report.timeline, "failed": self.now + node.skew_s}
        outcome = end if end.error else None
        node.report = replace(node.report, phase=Phase.SAVING, order=order, outcome=outcome, timeline=timeline)
        self._send(node, urgent=outcome is not None and not end.ordered)
        self.later(self.chance.choice([0.1, 1.0, 20.0, 120.0]), lambda: self._end(node, end))

    def _end(self, node: Node, end: Exit) -> None:
        if not self._gone(node) and node.report is not None:
            node.entered_at = self.now
            node.report = replace(node.report, phase=Phase.ENDED, exit=end)
            self._send(node, urgent=True, last=True)

    def _break(self, gone: Node, delay_s: float) -> None:
        """The peers of a trainer that is gone: within a moment, after a time-out, or never."""
        for node in self.training():
            if node is not gone and delay_s < NEVER:
                self.later(delay_s * self.chance.uniform(0.5, 1.5), lambda node=node: self._over(node, 1))  # type: ignore[misc]

    # What befalls them

    def fail(self, node: Node, delay_s: float) -> None:
        """Its code ends with an error of its own."""
        if node in self.training() and self.now >= node.frozen_until:
            self.errors.append((self.now, node.rank))
            self._over(node, 1)
            self._break(node, delay_s)

    def lose(self, node: Node, delay_s: float, ec2_s: float) -> None:
        """Its host, its agent or its network is gone; EC2 tells so after a while, or never."""
        if not self._gone(node):
            self.losses.append((self.now, node.rank))
            node.heard_to, node.ec2_tells_at = self.now, self.now + ec2_s
            self._break(node, delay_s)

    def give_order(self, error: str, author: Node | None, delay_s: float) -> None:
        """By the attendant, or by a node; a node that cannot write it down obeys it all the same."""
        if self.order is not None or self.own_order is not None or (author and author not in self.training()):
            return
        for node in self.all:
            node.slow_s = (
                0.0  # a report from before an order that nobody could write down must not arrive long after it
            )
        name = f"rank {author.rank}" if author else "attendant"
        by = int(self.now) + 120
        order = Order(kind=OrderKind.CHECKPOINT_AND_STOP, error=error, reason="so it was ordered.", by=by, author=name)
        if self.now >= max(self.away_until, self.nodes_away_until if author else 0.0):
            self.order = order, self.now
        elif author:
            self.own_order = order
        if author and (self.order or self.own_order):
            self._obey(author)
            leaves = self.chance.uniform(30, 31)
            self.later(leaves, lambda: self._break(author, delay_s))

    def finish(self) -> None:
        for node in self.training():
            self.later(self.chance.uniform(0, 2), lambda node=node: self._over(node, 0))  # type: ignore[misc]

    def lie(self, rank: int, instance: str, attempt: int) -> None:
        """Somebody else's report lies under a rank's key, with the highest number."""
        report = NodeReport(
            job=JOB.id, attempt=attempt, rank=rank, instance=instance, phase=Phase.ENDED, sent_at=0.0, sequence=10**6,
            exit=Exit(code=1, error="TrainingFailed"), timeline={"started": 1.0},
        )  # fmt: skip
        self.objects[KEYS.urgent(1, rank)] = report, self.now

    # What the attendant does

    def _clock(self) -> None:
        self.later(CLOCK_S * self.chance.uniform(0.95, 1.05), self._clock)
        if self.now >= max(self.away_until, self.attendant_dead_until):
            self._pass = self.now, gaps(self._last_pass())
            self._look(self._pass[1])

    def _look_again(self, left_s: float) -> None:
        looks = self.now >= max(self.away_until, self.attendant_dead_until)
        if looks and self._look(gaps(self._last_pass())) is Action.AWAIT and left_s > 0:
            self.later(AGAIN_S, lambda: self._look_again(left_s - AGAIN_S))

    def _last_pass(self) -> Pass | None:
        return None if self._pass is None else Pass(age_s=self._age(self._pass[0]), gaps_s=self._pass[1])

    def _age(self, moment: float) -> float:
        return float(math.floor(self.now) - math.floor(moment))

    def _look(self, gaps_s: tuple[float, ...]) -> Action:
        seen = [Seen(key=key, report=report, age_s=self._age(at)) for key, (report, at) in self.objects.items()]
        ids = tuple(node.id for node in self.all)
        facts = AttemptFacts(
            job=self.job,
            attempt=1,
            launched_at=NOW,
            ids=ids,
            instances=None if self.ec2_silent else self._described(),
            nodes=heard(seen, job=JOB.id, attempt=1, ids=ids),
            order=Given(order=self.order[0], age_s=self._age(self.order[1])) if self.order else None,
            gaps_s=gaps_s,
        )
        self.ec2_silent = False
        self.forgotten.clear()
        verdict = judge(facts, now=self.now)
        if verdict.action in {Action.FAIL, Action.SUCCEED}:
            self.verdict, self.ended_at = verdict, self.now
            if (verdict.error or "success") not in (allowed := self.oracle()):
                self.wrong.append(
                    f"{verdict.error or 'success'}, and the oracle says {sorted(allowed)}: {verdict.reason}"
                )
        return verdict.action

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

    # What really happened

    def oracle(self) -> set[str]:
        """The names that the end may have now; more than one only where rule 7 says so."""
        order = self.order[0] if self.order else self.own_order if self.own_order_told else None
        lost = [rank for _, rank in self.losses if not self.all[rank].told_end]
        errors = [(at, rank) for at, rank in self.errors if rank not in lost]
        gone = {order.error if order else "NodeLost"} if lost else set()
        if not errors:
            done = (
                {"success"} if not lost and all(node.told_end or node.over_at < NEVER for node in self.all) else set()
            )
            return gone or ({order.error} if order else set()) | done
        first = min(errors)[0]
        names = set[str]()
        ordered_at = NEVER if order is None else self.order[1] if self.order else -NEVER
        if order is not None and ordered_at <= first + CLOSE_S:
            names.add(order.error)  # rule 3
        if ordered_at >= first - CLOSE_S:
            unheard = [self.all[rank].arrived_at for rank in lost]
            if any(at <= first + CLOSE_S for at in unheard):
                names |= gone  # rule 5
            if all(at >= first for at in unheard):
                names.add("TrainingFailed")  # rule 4
        return names
