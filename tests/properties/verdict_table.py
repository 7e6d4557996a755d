"""The items of one attempt in the table of state, which may answer nobody, or no node: a report a node, dated by that node, the order, and
each node's copy of it, of which an ordinary read may show a state that is a second old."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from aws.errors import Raced
from aws.facts import Given, Seen
from contract.jobs import Job
from contract.orders import Order
from contract.reports import NodeReport

LAG_S, WRITE_S = 1.0, (0.02, 2.0)


class Away(Exception):
    """DynamoDB does not answer, or the function that asked it died."""


@dataclass
class AttemptTable:
    """What the attendant and the nodes read and write."""

    chance: random.Random
    now: Callable[[], float]
    away_until: float = 0.0
    """It answers nobody."""
    nodes_away_until: float = 0.0
    """It answers the functions, and no node."""
    copies_left: int | None = None
    """So many copies the next one who gives an order writes before it dies; None for all."""
    reports: dict[str, tuple[NodeReport, float]] = field(default_factory=dict)
    """By instance: the report, and when it was written as the node says."""
    lies: list[tuple[str, NodeReport]] = field(default_factory=list)
    """Items of others that speak of this attempt."""
    created: tuple[Order, float] | None = None
    copies: dict[str, tuple[Order, float]] = field(default_factory=dict)
    """By instance: its order, and since when."""
    _given_at: float = 0.0
    """When the copies that were given last are written."""

    @property
    def is_away(self) -> bool:
        return self.now() < self.away_until

    @property
    def is_away_from_nodes(self) -> bool:
        return self.now() < max(self.away_until, self.nodes_away_until)

    # What nodes do

    def put_report(self, report: NodeReport, at: float) -> None:
        """Leaves a newer one where it is."""
        before = self.reports.get(report.instance)
        if before is None or before[0].sequence < report.sequence:
            self.reports[report.instance] = report, at

    def copy(self, instance: str, *, certain: bool = False) -> Order | None:
        """A node's look for its order; None as well where DynamoDB does not answer."""
        given = self.copies.get(instance)
        sight = self.now() - (0.0 if certain else self.chance.uniform(0, LAG_S))
        return given[0] if given and given[1] <= sight and not self.is_away_from_nodes else None

    # What the attendant does: as aws.state.State

    def seen(self, now: float) -> list[Seen]:
        """`now` is the date of the answer."""
        own = [Seen(instance=one, report=told, age_s=now - at) for one, (told, at) in self.reports.items()]
        return own + [Seen(instance=one, report=told, age_s=0.0) for one, told in self.lies]

    def order(self, _job: str, _attempt: int, *, now: float) -> Given | None:
        if self.created is None:
            return None
        order, at = self.created
        return Given(order=order, age_s=max(0.0, now - at))

    def create_order(self, _job: Job, _attempt: int, order: Order) -> None:
        if self.created is not None:
            raise Raced("the order")
        self.created = order, self.now()

    def give_order(self, _job: Job, _role: str, instances: Sequence[str], order: Order) -> None:
        """Writes them side by side, after those of the call before; a throttle holds some up."""
        began = max(self.now(), self._given_at)
        for instance in instances:
            if self.copies_left is not None:
                self.copies_left -= 1
                if self.copies_left < 0:
                    self.copies_left = None
                    raise Away("died between two copies")
            self.copies.setdefault(instance, (order, began + self.chance.uniform(*WRITE_S)))
            self._given_at = max(self._given_at, self.copies[instance][1])
