"""Tells a training that makes no progress from one that trains, saves or begins: by what its nodes measured, and by nothing else.

Liveness is another thing: a node that is silent is lost, never stalled. So the age of a report never counts here, and while nodes or the
attendant cannot reach the table no training becomes stalled. A node may report what it likes of its own job, and so ends that job alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from attendant.facts import AttemptFacts
from attendant.roles import is_bad
from contract.jobs import Reaction
from contract.reports import Phase

DUMP_S = 30.0
"""How long nodes have to read an order and to write their stacks, before they stop their trainings."""
AGAIN_S = 900.0
"""Between two messages about the same attempt, at least: a training may stall and go on again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StallFacts:
    """A training that has made no progress for longer than its request allows."""

    idle_s: float
    """By the clock of the node that saw progress last."""
    age_s: float
    """How old the report is that says so."""
    rank: int
    """Whose report that is."""
    then: Reaction

    @property
    def since_s(self) -> float:
        """How long ago the stall began."""
        return self.idle_s + self.age_s

    def is_news(self, since_message_s: float) -> bool:
        """Whether people have to be told, where the last message about a stall of this attempt was sent so long ago."""
        return since_message_s > max(self.since_s, AGAIN_S)


def find_stall(facts: AttemptFacts, *, now: float) -> StallFacts | None:
    """Returns None where the training makes progress, or where that is not known: until the last node has begun to train and has had its
    time to warm up, from an order to stop on, and where the agents are of a version that does not measure. So it is once a node of a job
    without roles has ended.

    One rank's progress is the job's: in a collective none goes on alone. Where some ranks have a progress file, theirs is the progress. Of
    a job with roles, the nodes that decide make it, and those of them that have ended with 0 leave it to the others.
    """
    rule, nodes = facts.job.stall, {rank: facts.nodes[rank] for rank in facts.deciding if rank in facts.nodes}
    if rule is None or len(facts.nodes) < facts.job.nodes or facts.obeyed is not None:
        return None
    if facts.job.roles:
        nodes = {rank: node for rank, node in nodes.items() if node.end is None or is_bad(node.end)}
    if not nodes or any(node.end is not None for node in nodes.values()):
        return None
    at_work = [
        node
        for rank, node in facts.nodes.items()
        if node.end is None and (rank in facts.deciding or node.report.phase is not Phase.SAVING)
    ]
    if any(node.report.phase is not Phase.TRAINING for node in at_work):
        return None
    trained_s = min(min(node.report.phase_s for node in at_work), now - facts.launched_at)
    counted_s = trained_s - facts.job.timing.warm_up_s
    with_file = {rank for rank, node in nodes.items() if node.report.progress is not None}
    idle: dict[int, float] = {}
    for rank in sorted(with_file or nodes):
        if (idle_s := nodes[rank].report.idle_s) is None:
            return None
        idle[rank] = idle_s
    rank = min(idle, key=lambda one: idle[one])
    if min(idle[rank], counted_s) <= rule.minutes * 60:
        return None
    idle_s = min(idle[rank], trained_s)
    return StallFacts(idle_s=idle_s, age_s=nodes[rank].age_s, rank=rank, then=rule.then)
