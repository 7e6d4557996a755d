"""Terminate looks again within one invocation: EC2 shows for about a second what it was."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from contract import tags
from localaws.services.ec2_instance import Machine
from terminator.handler import AGAIN_S
from tests.builders import JOB, NOW
from tests.fakes.functions import PROFILE, Functions, Outcome
from tests.fakes.yard import admitted, deployed, home

SUM_S = sum(AGAIN_S)
CALLS_S = 1.0
"""What the calls of an invocation take at most."""


class Yard:
    """A job of which one instance runs."""

    def __init__(self) -> None:
        self.aws = deployed()
        self.functions, self.ec2 = Functions(self.aws), home(self.aws)
        admitted(self.aws)
        self.machine = self.node()

    def node(self) -> Machine:
        marks = {tags.DEPLOYMENT: JOB.deployment, tags.JOB: JOB.id, tags.ATTEMPT: "1"}
        return self.ec2.put(marks, launched_at=NOW - 1000.0, profile=PROFILE)

    def terminate(self) -> tuple[Outcome, float]:
        """How it ended, and after how many seconds."""
        event = {"job": JOB.id, "attempt": 1, "problem": None, "step": -1}
        began = self.aws.clock.now
        return self.functions.invoke("terminator", event), self.aws.clock.now - began

    @property
    def looks(self) -> int:
        return sum(call.name == "ec2:DescribeInstances" for call in self.aws.calls)


@pytest.fixture
def yard() -> Iterator[Yard]:
    made = Yard()
    with made.functions.installed():
        yield made


@pytest.mark.parametrize("lag_s", [0.0, 0.5, 1.4])
def test_states_of_a_moment_ago_keep_no_job_from_its_next_attempt(yard: Yard, lag_s: float) -> None:
    yard.ec2.lag_s = lag_s
    outcome, took_s = yard.terminate()
    assert outcome.error == "", outcome.cause
    assert outcome.value["terminated"] == [yard.machine.id]
    assert took_s < lag_s + AGAIN_S[1] + CALLS_S


def test_an_instance_that_accepts_its_end_and_runs_on_is_still_told(yard: Yard) -> None:
    yard.machine.stuck = True
    outcome, took_s = yard.terminate()
    assert outcome.error == "StillRunning"
    assert yard.machine.id in outcome.cause
    assert SUM_S <= took_s < SUM_S + CALLS_S


def test_an_instance_that_ec2_refuses_to_end_is_not_waited_for(yard: Yard) -> None:
    yard.machine.protected = True
    outcome, took_s = yard.terminate()
    assert outcome.error == "StillRunning"
    assert took_s < CALLS_S


def test_one_that_ends_and_one_that_does_not_are_no_proof(yard: Yard) -> None:
    other = yard.node()
    other.stuck = True
    outcome, _ = yard.terminate()
    assert outcome.error == "StillRunning"
    assert other.id in outcome.cause
    assert yard.machine.id not in outcome.cause


def test_a_job_of_which_nothing_runs_is_looked_at_as_often_as_before(yard: Yard) -> None:
    yard.ec2.machines.clear()
    outcome, took_s = yard.terminate()
    assert (outcome.error, outcome.value["terminated"]) == ("", [])
    assert took_s < CALLS_S
    assert yard.looks == 1
