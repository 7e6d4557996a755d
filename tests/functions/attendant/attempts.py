"""Attempts as the attendant sees them: nodes, their reports and an order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from attendant.facts import AttemptFacts
from aws.facts import Given, Heard, Instance
from contract.orders import Order, OrderKind
from contract.reports import Exit, NodeReport, Phase
from contract.sessions import AttemptSessions
from tests.builders import JOB, NOW

IDS = ("i-0", "i-1")


def instance(rank: int, state: str = "running") -> Instance:
    return Instance(
        id=IDS[rank], region="eu-central-1", state=state, rank=rank, address=f"10.0.0.{rank}", launched_at=NOW
    )


def heard(rank: int, *, age_s: float = 5.0, **fields: Any) -> Heard:
    report = NodeReport(job="job-1", attempt=1, rank=rank, instance=f"i-{rank}", phase=Phase.TRAINING, sent_at=NOW)
    return Heard(report=replace(report, **fields), age_s=age_s)


def ended(
    rank: int, code: int = 0, *, ago_s: float = 900.0, at: float = NOW, started: bool = True, **fields: Any
) -> Heard:
    """`ago_s` by AWS's clock, `at` by the node's own, of which nothing is known."""
    timeline = {"failed": at, **({"started": NOW} if started else {})}
    return heard(rank, phase=Phase.ENDED, exit=Exit(code=code, **fields), timeline=timeline, age_s=ago_s)


TRAINING = AttemptFacts(
    job=JOB,
    attempt=1,
    launched_at=NOW,
    ids=IDS,
    instances={id_: instance(rank) for rank, id_ in enumerate(IDS)},
    nodes={0: heard(0), 1: heard(1)},
    sessions=AttemptSessions(since=NOW, until=NOW + 3600),
)
FOUR = replace(
    TRAINING,
    job=replace(JOB, nodes=4),
    ids=tuple(f"i-{rank}" for rank in range(4)),
    instances={f"i-{rank}": replace(instance(0), id=f"i-{rank}", rank=rank) for rank in range(4)},
    nodes={rank: heard(rank) for rank in range(4)},
)
ORDER = Order(
    kind=OrderKind.CHECKPOINT_AND_STOP,
    error="Interrupted",
    reason="A spot notice came.",
    by=int(NOW) + 500,
    author="rank 1",
)
GIVEN = Given(order=ORDER, age_s=1000.0)
LATER = NOW + 600
