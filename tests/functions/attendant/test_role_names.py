"""Whatever is said of a rank in a job with roles names its role and its place there; in other jobs nothing is added."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from attendant.facts import AttemptFacts
from attendant.notices import word_stall
from attendant.policy import judge
from attendant.unhealthy import list_nodes
from aws.facts import Given
from contract.errors import NodeLost, TrainingFailed
from contract.jobs import NoProgress, Reaction
from contract.orders import Order, OrderKind
from contract.reports import Phase
from contract.roles import name_author, name_place, name_rank, name_ranks
from tests.builders import JOB, NOW, WITH_ROLES, rung
from tests.functions.attendant.attempts import TRAINING, ended, heard
from tests.functions.attendant.role_attempts import (
    CHIEF,
    EVALUATOR,
    FIVE,
    OTHER,
    SERVER,
    WELL,
    WORKER,
    having,
    saving,
    without,
)

BARE = re.compile(r"\branks? \d+(?! \(|\d)|\(\w+ \d+\), \d+(?! \()")
"""A rank that is named by its number alone."""
OF_NODE = Order(
    kind=OrderKind.CHECKPOINT_AND_STOP, error="Interrupted", reason="a notice came", by=int(NOW) + 100, author="rank 3"
)
PATIENT = replace(WITH_ROLES, stall=NoProgress(minutes=10, then=Reaction.NOTIFY))
IDLE = {f"r{rank}": heard(rank, phase_s=5000.0, idle_s=4000.0, timeline={"started": NOW}) for rank in range(5)}
SAID: dict[str, AttemptFacts] = {
    "a failure": having(r1=ended(WORKER, 7, error=TrainingFailed.__name__, reason="rank 1: it exited with code 7", tail=("a", "b"))),
    "a failure of a server and what follows": having(r3=ended(SERVER, 1), r0=ended(CHIEF, 1, ago_s=800.0), r2=ended(OTHER, 1, ago_s=800.0)),
    "a failure that may not be its own": having(r1=ended(WORKER, 1, ago_s=3.0)),
    "a machine that is looked at": having(r1=ended(WORKER, 1, ago_s=3.0)),
    "a node that gave up": having(r3=ended(SERVER, 1, error=NodeLost.__name__, reason="rank 3: its disk is gone")),
    "what could not begin": having(r3=ended(SERVER, 1, started=False, reason="rank 3: no requirements")),
    "a server that left": having(r3=ended(SERVER, ago_s=WITH_ROLES.timing.silence_s + 60)),
    "a loss": without(having(r3=heard(SERVER, note="it saves"), r4=ended(EVALUATOR, 1, ago_s=2.0)), SERVER),
    "a node that never came": replace(FIVE, nodes={rank: one for rank, one in FIVE.nodes.items() if rank != 4}),
    "an order of a node": replace(having(r3=heard(SERVER, order=OF_NODE)), order=None),
    "nodes that stopped by it": replace(
        having(**{f"r{rank}": ended(rank, 143, ordered=True, error="Interrupted") for rank in range(5)}),
        order=Given(order=OF_NODE, age_s=950.0),
    ),
    "a loss after an order": replace(without(FIVE, SERVER), order=Given(order=OF_NODE, age_s=100.0)),
    "machines at fault": replace(
        having(**{f"r{rank}": ended(rank, 1, error="NodeUnhealthy", reason="GPU 0") for rank in (0, 3)}), rung=rung()
    ),
    "a phase": having(r3=heard(SERVER, phase=Phase.PREPARING, phase_s=10_000.0, note="it installs")),
    "last commits": having(r1=saving(WORKER, phase_s=10_000.0)),
    "starts": having(**{f"r{rank}": heard(rank, restored="s", restored_step=rank, timeline={"prepared": NOW}) for rank in range(5)}),
    "no progress": replace(having(**IDLE), job=PATIENT),
    "who is waited for": having(r0=WELL, r1=WELL, r2=WELL, r3=ended(SERVER, 0)),
    "an end": having(r0=WELL, r1=WELL, r2=WELL, r3=ended(SERVER, 1), r4=ended(EVALUATOR, 3)),
}  # fmt: skip
QUIET = {"an end"}
"""Those that say no rank at all, only roles."""


@pytest.mark.parametrize("what", SAID)
def test_a_verdict_names_the_role_of_every_rank(what: str) -> None:
    reason = judge(SAID[what], now=NOW + 6000 if what in {"no progress", "a node that never came"} else NOW + 60).reason
    assert BARE.findall(reason) == [], reason
    assert re.search(r"(chief|worker|ps|evaluator) \d", reason), reason
    assert what in QUIET or "ank" in reason


def test_the_machines_that_are_noted_have_their_roles() -> None:
    noted = list_nodes(replace(FIVE, rung=rung()), {3: "GPU 0", 1: "GPU 1"})
    assert [(one.rank, one.role) for one in noted] == [(1, "worker 0"), (3, "ps 0")]
    plain = list_nodes(replace(TRAINING, rung=rung()), {1: "GPU 1"})
    assert [one.role for one in plain] == [""]


def test_a_message_about_a_stall_has_the_role_of_its_reason() -> None:
    verdict = judge(SAID["no progress"], now=NOW + 6000)
    assert "rank 0 (chief 0) reports" in word_stall(PATIENT, 1, verdict.reason, goes_on=True, cost="").text


@pytest.mark.parametrize(
    "nodes", [{0: ended(0, 7), 1: heard(1)}, {0: heard(0), 1: heard(1, phase=Phase.PREPARING, phase_s=10_000.0)}]
)
def test_in_a_job_without_roles_nothing_is_added(nodes: dict[int, Any]) -> None:
    reason = judge(replace(TRAINING, nodes=nodes), now=NOW + 60).reason
    assert re.search(r"rank \d( \(i-\d\))?", reason)
    assert not re.search(r"worker|chief", reason)


def test_ranks_have_their_names() -> None:
    roles = WITH_ROLES.roles
    assert [name_rank(roles, rank) for rank in (0, 2, 4)] == [
        "rank 0 (chief 0)",
        "rank 2 (worker 1)",
        "rank 4 (evaluator 0)",
    ]
    assert (name_rank((), 3), name_rank(roles, 99), name_place(roles, 99)) == ("rank 3", "rank 99", "")
    assert name_ranks(roles, [1, 3]) == "ranks 1 (worker 0), 3 (ps 0)"
    assert (name_ranks(JOB.roles, [1, 3]), name_ranks(roles, [3])) == ("ranks 1, 3", "rank 3 (ps 0)")
    assert [name_author(roles, one) for one in ("attendant", "rank 3", "rank x")] == [
        "attendant",
        "rank 3 (ps 0)",
        "rank x",
    ]
