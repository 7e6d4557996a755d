"""The facts by which an attempt is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from attendant.costs import RunningCost
from aws.facts import Given, Heard, Instance
from contract.jobs import Job, Rung
from contract.orders import Order
from contract.reports import Exit
from contract.roles import OTHERS, RoleEnd, list_ranks
from contract.sessions import AttemptSessions

SURE_S = 2.0
"""The times of AWS's answers have whole seconds: of two that are closer than this, it is not known which came first."""
FAILING_S = 60.0
"""Seconds to wait for a node with a failed process: torchrun gives the node's other processes 30 seconds, and the node reports then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingAttempt:
    """An attempt for which Train waits, and of which the table has no job or no launch."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFacts:
    """The facts of one attempt. Instances are read before reports, so that a node that is gone has sent its last report by then."""

    job: Job
    attempt: int
    launched_at: float
    ids: tuple[str, ...]
    """Instance ids by rank, from the intent."""
    instances: Mapping[str, Instance] | None
    """By id; None where EC2 did not answer, which proves nothing."""
    addresses: tuple[str, ...] = ()
    """Private addresses by rank, from the intent; empty where it tells none."""
    nodes: Mapping[int, Heard]
    """By rank; a node that never reported is not in it."""
    rung: Rung | None = None
    """On which the attempt was launched."""
    order: Given | None = None
    console: Mapping[int, str] = field(default_factory=dict)
    """By rank, the end of the console of nodes that never reported; read only where their loss ends the attempt."""
    sessions: AttemptSessions = field(default_factory=AttemptSessions)
    """What the look before this one knew of the attempt's sessions."""
    training_role: str = ""
    """ARN of the role that the request names; empty where it names none, or where the settings no longer have its name."""
    cost: RunningCost | None = None
    """None where the caller does not compute it."""
    gaps_s: tuple[float, ...] | None = None
    """Seconds between the attendant's passes over all jobs, from now backwards; None where no pass was missed."""

    @property
    def region(self) -> str:
        """Where the attempt was launched; empty where its rung is not known."""
        return self.rung.region if self.rung else ""

    @property
    def ends(self) -> dict[int, Exit]:
        """How the work of each node ended whose work is over; its last commits may still be on their way."""
        return {rank: node.end for rank, node in sorted(self.nodes.items()) if node.end is not None}

    @property
    def deciding(self) -> tuple[int, ...]:
        """The ranks whose commands have to end with 0 for the job to be done: all of a job without roles."""
        return list_ranks(self.job.roles, RoleEnd.JOB) if self.job.roles else tuple(range(self.job.nodes))

    @property
    def others(self) -> tuple[int, ...]:
        """The ranks that do not decide."""
        return list_ranks(self.job.roles, *OTHERS)

    @property
    def obeyed(self) -> Order | None:
        """The attempt's order, or one that a node gave itself and the others do not have yet. One without an error releases a node
        whose job is done."""
        if self.order is not None:
            return self.order.order
        given = (node.report.order for _, node in sorted(self.nodes.items()))
        return next((order for order in given if order is not None and order.error), None)

    @property
    def uninformed(self) -> list[int]:
        """The ranks that work on without the attempt's order."""
        if self.order is None:
            return []
        known = {rank for rank, node in self.nodes.items() if node.end is not None or node.report.order is not None}
        return [rank for rank in range(len(self.ids)) if rank not in known]

    @property
    def ordered_s(self) -> float:
        """How long ago the first order came: to the table, or to a node, which may have left by one of its own."""
        given = [node for node in self.nodes.values() if node.report.order is not None and node.report.order.error]
        nodes = [node.ordered_s for node in given]
        return max([*nodes, 0.0 if self.order is None else self.order.age_s])
