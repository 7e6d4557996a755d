"""The nodes of one attempt as they really are: machine, agent and trainer, and all that befalls them."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from contract.errors import DeadlineReached
from contract.jobs import NoProgress, Reaction
from contract.orders import Order, OrderKind
from contract.reports import Exit, NodeReport, Phase, Progress
from tests.builders import JOB, NOW
from tests.properties.verdict_table import AttemptTable

ORDERS_S = JOB.timing.orders_every_s
PATIENCE_S = 10.0
"""How long a node with a spot notice waits for its copy of the order."""
EARLY_S = 1.0
"""By how much a node dates its reports early, at most."""
WAY_S = (0.02, 1.0)
"""How long a report is on its way."""
NOTICE_S = 120.0
STALL_S = 1200.0
"""How long a training may stand still, after its warm-up."""
SOON_S = JOB.timing.report_every_s + 25.0
"""Within which a node is heard with nothing in its way but a slow network."""
NEVER = math.inf


@dataclass
class Node:
    """A machine, its agent and its trainer, as they really are."""

    rank: int
    skew_s: float
    heard_to: float = NEVER
    """Nothing of it reaches the table from then on."""
    ec2_tells_at: float = NEVER
    frozen_until: float = 0.0
    slow_s: float = 0.0
    """How much longer its reports take."""
    trains: bool = False
    over_at: float = NEVER
    """When its trainer's work was over."""
    report: NodeReport | None = None
    own: Order | None = None
    """The order that it asks for."""
    obeys: Order | None = None
    entered_at: float = 0.0
    ordered_at: float = 0.0
    """Since when its report has an order."""
    busy_until: float = 0.0
    heard_at: float = -NEVER
    """When the last report was sent that the table took."""
    told_end: bool = False
    well: bool = False
    """Its work was over with exit code 0, and no order ended it."""
    breaks_s: float = NEVER
    """After its trainer has obeyed an order, its peers' trainers break so much later."""

    @property
    def id(self) -> str:
        return f"i-{self.rank}"


@dataclass
class Nodes:
    """The nodes, their time, and the table that they write to."""

    nodes: int
    seed: int
    now: float = NOW
    errors: list[tuple[float, int]] = field(default_factory=list)
    """When the code failed by itself, and where."""
    losses: list[tuple[float, int]] = field(default_factory=list)
    asked: list[tuple[float, Order]] = field(default_factory=list)
    """The orders for which nodes asked, and when."""
    told: list[Order] = field(default_factory=list)
    """Those of which the table has been told."""
    hangs: bool = False
    """The trainers wait for each other, and will for ever."""
    moved_at: float = NOW
    """When they last finished a step, which none finishes alone."""
    wrong: list[str] = field(default_factory=list)
    """What must never happen, and did."""
    _due: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _number: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.job = replace(JOB, nodes=self.nodes, stall=NoProgress(minutes=STALL_S / 60, then=Reaction.RESTART))
        self.table = AttemptTable(self.chance, lambda: self.now)
        self.all = [Node(rank, self.chance.choice([0.0, 0.0, -300.0, 300.0])) for rank in range(self.nodes)]
        for node in self.all:
            self.later(self.chance.uniform(20, 60), lambda node=node: self._boot(node))  # type: ignore[misc]

    def is_over(self) -> bool:
        """Whether the attempt has its verdict."""
        return False

    def wake(self, instance: str) -> None:
        """The table took an urgent report."""

    # Time

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now + seconds, next(self._number), action))

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while not self.is_over() and self._due and self._due[0][0] <= until:
            self.now, _, action = heapq.heappop(self._due)
            self._step()
            action()
        self.now = max(self.now, until)
        self._step()

    def _step(self) -> None:
        at_work = [node for node in self.training() if self.now >= node.frozen_until]
        if len(at_work) == self.nodes and not self.hangs:
            self.moved_at = self.now

    # What befalls them

    def training(self) -> list[Node]:
        return [node for node in self.all if node.trains and node.over_at == NEVER and not self._gone(node)]

    def silent(self) -> list[Node]:
        """Those that should have been heard by now, whatever kept them from it."""
        return [node for node in self.all if -NEVER < node.heard_at < self.now - SOON_S and not node.told_end]

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

    def notice(self, node: Node, error: str, delay_s: float, *, reclaimed: bool) -> None:
        """It asks for an order: EC2 has told it that it wants the machine back, or its deadline is near. Its peers break `delay_s`
        after its trainer has stopped. A spot machine that is `reclaimed` is gone two minutes later."""
        if (
            node not in self.training()
            or node.own is not None
            or node.obeys is not None
            or self.now < node.frozen_until
        ):
            return
        by = int(self.now + NOTICE_S)
        author = f"rank {node.rank}"
        node.own = Order(kind=OrderKind.CHECKPOINT_AND_STOP, error=error, reason="so it asked.", by=by, author=author)
        node.breaks_s = delay_s
        self.asked.append((self.now, node.own))
        self._take(node, node.own)
        self._send(node, urgent=True)
        self.later(0.0 if error == DeadlineReached.__name__ else PATIENCE_S, lambda: self._obey(node, node.own))
        if reclaimed:
            self.later(NOTICE_S, lambda: self.lose(node, delay_s, self.chance.choice([0.5, 5.0, 60.0])))

    def hang(self) -> None:
        """A collective never returns; the processes live, and so do the agents."""
        self._step()
        self.hangs = True

    def finish(self) -> None:
        """Unless they hang."""
        for node in () if self.hangs else self.training():
            self.later(self.chance.uniform(0, 2), lambda node=node: self._over(node, 0))  # type: ignore[misc]

    def _gone(self, node: Node) -> bool:
        return node.heard_to <= self.now

    def _break(self, gone: Node, delay_s: float) -> None:
        """The peers of a trainer that is gone: within a moment, after a time-out, or never."""
        for node in self.training():
            if node is not gone and delay_s < NEVER:
                self.later(delay_s * self.chance.uniform(0.5, 1.5), lambda node=node: self._over(node, 1))  # type: ignore[misc]

    # Reports

    def _boot(self, node: Node) -> None:
        if not self._gone(node):
            node.trains = True
            node.entered_at = self.now
            node.report = NodeReport(
                job=JOB.id, attempt=1, rank=node.rank, instance=node.id, phase=Phase.TRAINING, sent_at=0.0,
                timeline={"started": self.now + node.skew_s},
            )  # fmt: skip
            self._tick(node)
            self._watch(node)

    def _tick(self, node: Node) -> None:
        """A node that thaws finds that its report is overdue."""
        if not self._gone(node) and node.report and node.report.exit is None:
            if self.now >= node.frozen_until:
                self._send(node)
            pause_s = max(JOB.timing.report_every_s, node.frozen_until - self.now)
            self.later(pause_s, lambda: self._tick(node))

    def _send(self, node: Node, *, urgent: bool = False, last: bool = False) -> None:
        """One report after the other; each is on its way for a while, dated by AWS's clock as the node reckons it when it is sent."""
        if self._gone(node) or node.report is None:
            return
        if (wait := max(node.busy_until, node.frozen_until) - self.now) > 0:
            self.later(wait, lambda: self._send(node, urgent=urgent, last=last))
            return
        told = node.report
        node.report = report = replace(
            told, sequence=told.sequence + 1, sent_at=self.now + node.skew_s, phase_s=self.now - node.entered_at,
            failed_s=self.now - node.over_at if told.outcome else 0.0,
            ordered_s=self.now - node.ordered_at if told.order else 0.0,
            idle_s=self.now - max(node.entered_at, self.moved_at) if told.phase is Phase.TRAINING else None,
            progress=Progress(step=1) if node.rank == 0 and self.seed % 2 else None,
        )  # fmt: skip
        sent_at, way_s = self.now, self.chance.uniform(*WAY_S) + node.slow_s
        at = sent_at - self.chance.uniform(0, EARLY_S)
        node.busy_until = self.now + way_s

        def arrive() -> None:
            if self._gone(node):
                return
            if not self.table.is_away_from_nodes:
                self._arrived(node, report, sent_at, at, urgent=urgent)
                if last:
                    node.heard_to = node.ec2_tells_at = self.now  # it powers itself off
                return
            if self.chance.random() < 0.2:  # a try that was long on its way
                self.later(self.chance.uniform(1, 60), late)
            if urgent or last:
                self.later(self.chance.uniform(1, 20), lambda: self._send(node, urgent=urgent, last=last))

        def late() -> None:
            if not self._gone(node) and not self.table.is_away_from_nodes:
                self._arrived(node, report, sent_at, at, urgent=urgent)

        self.later(way_s, arrive)

    def _arrived(self, node: Node, report: NodeReport, sent_at: float, at: float, *, urgent: bool) -> None:
        """The table takes it, unless it has a newer one."""
        self.table.put_report(report, at)
        if self.table.reports[node.id][0] is not report:
            return
        node.heard_at = sent_at
        self.told += [order for _, order in self.asked if order is report.order]
        node.told_end = node.told_end or (report.exit or report.outcome) is not None
        if urgent:
            self.wake(node.id)

    # Orders

    def _watch(self, node: Node) -> None:
        """The agent's look for an order, every five seconds."""
        if node in self.training():
            if self.now >= node.frozen_until and node.obeys is None and (given := self.table.copy(node.id)):
                self._check_order(node, given)
                self._obey(node, given)
            self.later(ORDERS_S, lambda: self._watch(node))

    def _check_order(self, node: Node, given: Order) -> None:
        """A node that asked for the order stops its trainer soon, so every peer has its copy before."""
        if given == node.own:
            copies = {one for one, (_, since) in self.table.copies.items() if since <= self.now}
            if untold := [one.id for one in self.all if one.id not in copies]:
                self.wrong.append(f"{node.id} has the order for which it asked, and {untold} have no copy")

    def _take(self, node: Node, order: Order) -> None:
        assert node.report is not None
        if node.report.order is None:
            node.ordered_at = self.now
        node.report = replace(node.report, order=order)

    def _obey(self, node: Node, order: Order | None) -> None:
        if order is None or node.obeys is not None or node not in self.training():
            return
        if (wait := node.frozen_until - self.now) > 0:
            self.later(wait, lambda: self._obey(node, order))
            return
        node.obeys = order
        if order != node.own:
            self._take(node, order)
        self.later(self.chance.uniform(0.1, 30), lambda: self._over(node, 143))

    # The end of the work

    def _over(self, node: Node, code: int) -> None:
        """The trainer's end, by itself or because something broke. A node whose command failed looks for an order once more."""
        if node not in self.training() or node.report is None:
            return
        if (wait := node.frozen_until - self.now) > 0:
            self.later(wait, lambda: self._over(node, code))
            return
        if code and node.obeys is None and (order := self.table.copy(node.id, certain=True) or node.own):
            node.obeys = order
            if order != node.own:
                self._take(node, order)
        node.over_at = node.entered_at = self.now
        end = Exit(code=code, error="" if code == 0 else "TrainingFailed")
        if node.obeys is not None:
            end = Exit(code=code, error=node.obeys.error, reason=node.obeys.reason, ordered=True)
        timeline = {**node.report.timeline, "failed": self.now + node.skew_s}
        outcome, node.well = end if end.error else None, not end.error
        node.report = replace(node.report, phase=Phase.SAVING, outcome=outcome, timeline=timeline)
        self._send(node, urgent=outcome is not None and not end.ordered)
        self.later(self.chance.choice([0.1, 1.0, 20.0, 120.0]), lambda: self._end(node, end))
        if end.ordered:
            self._break(node, node.breaks_s)

    def _end(self, node: Node, end: Exit) -> None:
        if not self._gone(node) and node.report is not None:
            node.entered_at = self.now
            node.report = replace(node.report, phase=Phase.ENDED, exit=end)
            self._send(node, urgent=True, last=True)
