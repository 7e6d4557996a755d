"""Jobs with roles beside each other: whatever befalls which role, each has one end, and nothing of it is left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from contract.reports import Exit
from tests.fakes.yard import ABROAD
from tests.properties.jobs_oracle import RETRIED_CODE
from tests.properties.jobs_rules import STARTS, WHICH, Jobs, Start
from tests.properties.rounds import DEEP, numbers, play
from tests.properties.world import Node

ROUNDS, EXAMPLES, STEPS = (60, 10, 40) if DEEP else (8, 3, 30)
CHIEF: dict[str, Any] = {"name": "chief"}
SERVER: dict[str, Any] = {"name": "ps", "ends": "served", "instance_types": ["g4dn.xlarge"]}
EVALUATOR: dict[str, Any] = {"name": "evaluator", "ends": "alone"}
ROLES: list[list[dict[str, Any]]] = [
    [CHIEF, SERVER],
    [CHIEF, {"name": "worker"}, SERVER, EVALUATOR],
    [SERVER, CHIEF, EVALUATOR],
    [CHIEF, {**SERVER, "count": 2, "market": "spot"}],
    [CHIEF, {"name": "actor", "ends": "freely", "count": 2}, SERVER],
]
REQUEST = st.fixed_dictionaries(
    {
        "roles": st.sampled_from(ROLES),
        "instance_types": st.sampled_from([["g5.xlarge"], ["g4dn.xlarge", "g5.xlarge"]]),
        "max_hours": st.sampled_from([24.0, 24.0, 0.5]),
    },
    optional={
        "region": st.just(ABROAD.region),
        "max_cost_usd": st.sampled_from([6.0, 12.0]),
        "checkpoint_scope": st.just("rank0"),
        "stall": st.just({"minutes": 5.0, "then": "restart"}),
    },
)
BEGINS = (
    Start(),
    Start(free=1),
    Start(breaks=True),
    Start(meets=(("launcher", "ec2:RunInstances", "given up"), ("terminator", "ec2:TerminateInstances", "given up"))),
    replace(STARTS[4], breaks=False),
    Start(losses=3),
    Start(free=2, losses=1),
    Start(redriven_s=20.0),
)


class RoleJobs(Jobs):
    """Faults strike a node by chance, and so every role."""

    start: ClassVar[Start]

    def nodes(self, which: int) -> list[Node]:
        found = super().nodes(which)
        self.world.chance.shuffle(found)
        return found

    @initialize(seed=st.integers(0, 2**32), first=REQUEST, second=REQUEST, apart=st.sampled_from([0, 1, 40]))
    def two_begin(self, seed: int, first: dict[str, object], second: dict[str, object], apart: int) -> None:
        self.begin(seed, first, second, apart)

    @rule(which=WHICH, code=st.sampled_from([0, 1, RETRIED_CODE]))
    def a_server_dies(self, which: int, code: int) -> None:
        run = self.one(which)
        for node in [node for node in self.nodes(which) if run.serves(node)][:1]:
            self.world.leave(node, Exit(code=code))

    @rule(which=WHICH)
    def those_that_decide_end_well_and_the_others_go_on(self, which: int) -> None:
        run = self.one(which)
        for node in self.nodes(which):
            if run.decides(node):
                self.world.leave(node, Exit(code=0))


@pytest.mark.timeout(0)
@pytest.mark.parametrize("number", numbers(ROUNDS, quick=2))
def test_every_job_with_roles_has_one_end_whatever_befalls_which_of_them(number: int) -> None:
    class Round(RoleJobs):
        start = BEGINS[number % len(BEGINS)]

    play(number, Round, examples=EXAMPLES, steps=STEPS)
