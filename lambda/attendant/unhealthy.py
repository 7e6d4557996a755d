"""Distinguishes an attempt whose machines are at fault from one whose code is: by what its nodes say of their machines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from attendant.facts import AttemptFacts
from contract.errors import NodeUnhealthy
from contract.health import HealthCheck, UnhealthyNode
from contract.roles import name_place
from contract.shapes import find_rung

EXAMINES_S = 30.0
"""How long after its error a node may examine its machine for a fault: twice what an agent takes at most. A node that says longer that it
does delays nothing more."""
MOST_NOTED = 20
"""Nodes of an attempt that are noted."""
MOST_WHY = 500
"""Characters of what a node says."""


def find_unhealthy(facts: AttemptFacts) -> dict[int, str]:
    """Returns what is wrong with machines, by rank, as their nodes say it. Those that have not begun to train count at once; the others
    beside an error of any command (`policy`). An order explains the end of whoever obeys it."""
    if facts.job.health is HealthCheck.OFF:
        return {}
    said = {rank: node.report.unhealthy for rank, node in sorted(facts.nodes.items()) if node.report.unhealthy}
    ended = {rank: end.reason for rank, end in facts.ends.items() if end.error == NodeUnhealthy.__name__}
    return {rank: (said.get(rank) or ended[rank])[:MOST_WHY] for rank in sorted({*said, *ended})}


def before_training(facts: AttemptFacts, wrong: Iterable[int]) -> list[int]:
    """Returns those of the ranks that have not begun to train, and never will."""
    return [rank for rank in wrong if "started" not in facts.nodes[rank].report.timeline]


def find_examining(facts: AttemptFacts, failed: Collection[int]) -> int | None:
    """Returns a rank among those that failed which still examines its machine for a fault; None where none does."""
    if facts.job.health is HealthCheck.OFF:
        return None
    ranks = (rank for rank in failed if facts.nodes[rank].report.examines)
    return next((rank for rank in ranks if facts.nodes[rank].failed_s <= EXAMINES_S), None)


def list_nodes(facts: AttemptFacts, wrong: Mapping[int, str]) -> list[UnhealthyNode]:
    """Returns what is noted of these ranks: facts of the launch, and the node's words."""
    if facts.rung is None:
        return []
    return [
        UnhealthyNode(
            attempt=facts.attempt,
            rank=rank,
            instance=facts.ids[rank],
            region=facts.rung.region,
            zone=facts.rung.zone,
            instance_type=find_rung(facts.job, facts.rung, rank).instance_type,
            why=why,
            role=name_place(facts.job.roles, rank),
        )
        for rank, why in sorted(wrong.items())[:MOST_NOTED]
    ]
