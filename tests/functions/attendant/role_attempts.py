"""An attempt of a job with roles as the attendant sees it: a chief, two workers, a server and an evaluator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from attendant.facts import AttemptFacts
from aws.facts import Heard, Instance
from contract.reports import Phase
from contract.roles import RoleEnd
from tests.builders import NOW, WITH_ROLES
from tests.functions.attendant.attempts import TRAINING, ended, heard, instance

CHIEF, WORKER, OTHER, SERVER, EVALUATOR = range(5)
IDS = tuple(f"i-{rank}" for rank in range(5))
FIVE = replace(
    TRAINING,
    job=WITH_ROLES,
    ids=IDS,
    instances={id_: replace(instance(0), id=id_, rank=rank) for rank, id_ in enumerate(IDS)},
    nodes={rank: heard(rank, timeline={"started": NOW}) for rank in range(5)},
)
WELL = ended(CHIEF, ago_s=20.0)


def of(rank: int, end: Heard) -> Heard:
    return replace(end, report=replace(end.report, rank=rank, instance=f"i-{rank}"))


def having(facts: AttemptFacts = FIVE, /, **nodes: Heard) -> AttemptFacts:
    """With other nodes, by `r<rank>`."""
    changed = {int(name[1:]): of(int(name[1:]), one) for name, one in nodes.items()}
    return replace(facts, nodes={**facts.nodes, **changed})


def without(facts: AttemptFacts, rank: int) -> AttemptFacts:
    """The node's instance is gone before its work was done."""
    assert facts.instances is not None
    gone: Instance = replace(facts.instances[f"i-{rank}"], state="terminated")
    return replace(facts, instances={**facts.instances, f"i-{rank}": gone})


DONE = having(r0=WELL, r1=WELL, r2=WELL)
"""The nodes that decide have ended well, and the others still run."""


RANK_OF = {RoleEnd.JOB: WORKER, RoleEnd.SERVED: SERVER, RoleEnd.FREELY: SERVER, RoleEnd.ALONE: EVALUATOR}


def whose_server(ends: RoleEnd, facts: AttemptFacts = FIVE) -> AttemptFacts:
    """The same with another word for what the end of its server means."""
    roles = tuple(replace(one, ends=ends) if one.name == "ps" else one for one in facts.job.roles)
    return replace(facts, job=replace(facts.job, roles=roles))


def saving(rank: int, **fields: Any) -> Heard:
    """Its command has ended with 0, and its last commits are on their way: its agent reports no more than that."""
    return heard(rank, phase=Phase.SAVING, timeline={"started": NOW}, **fields)
