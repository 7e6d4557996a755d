"""A storm of throttles over the launcher's calls: the job goes on in its first attempt, with one whole cluster."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from contract.reports import Exit
from tests.fakes.faults import Kind, Mishap
from tests.properties.world import World

INVOCATIONS = 12
"""So many of the launcher in a row meet the storm: minutes, with the machine's pauses between them."""
CALLS = (
    "dynamodb:GetItem",
    "dynamodb:Query",
    "dynamodb:PutItem",
    "ec2:DescribeInstances",
    "ec2:RunInstances",
    "ec2:CreateTags",
)


@pytest.fixture
def world() -> Iterator[World]:
    made = World(job_hours=4.0)
    yield made
    made.close()


@pytest.mark.parametrize("kind", [Kind.THROTTLED, Kind.ERROR, Kind.DENIED])
@pytest.mark.parametrize("call", [one for one in CALLS if one != "ec2:RunInstances"])
def test_no_storm_over_a_call_of_the_launcher_ends_an_attempt(world: World, call: str, kind: Kind) -> None:
    for number in range(INVOCATIONS):
        world.arm("launcher", Mishap(call, times=math.inf, fault=kind), after=number)
    ends_in_its_first_attempt(world)


def test_a_storm_over_run_instances_is_the_launchers_own_patience(world: World) -> None:
    for number in range(3):
        world.arm("launcher", Mishap("ec2:RunInstances", times=math.inf, fault=Kind.THROTTLED), after=number)
    ends_in_its_first_attempt(world)


def ends_in_its_first_attempt(world: World) -> None:
    while not world.execution.over and world.aws.clock.now < world.job.deadline:
        if world.execution.state == "Train":
            for node in world.living():
                world.leave(node, Exit(code=0))
        world.run(61.0)
    assert world.surprises == []
    assert (world.execution.state, world.execution.attempt, world.execution.problem) == ("Done", 1, None)
    launched = [machine for machine in world.every() if machine not in world.strangers]
    assert len({machine.reservation for machine in launched}) == 1
    assert len(launched) == world.job.nodes
