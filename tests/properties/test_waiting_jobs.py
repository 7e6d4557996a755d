"""Jobs that wait for capacity beside each other, in any order of capacity, clocks, tokens and stops: each ends for a reason of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests.builders import JOB
from tests.fakes.faults import Death, Kind, Mishap
from tests.properties.jobs_rules import FAULTS, KINDS, Jobs
from tests.properties.jobs_world import JobsWorld, Run
from tests.properties.retrying import WAIT
from tests.properties.rounds import DEEP, numbers, play

ROUNDS, EXAMPLES, STEPS = (100, 10, 40) if DEEP else (2, 2, 20)
HASTY = replace(JOB.timing, launch_patience_s=240.0)
AWAY_S = 420.0
"""After this long a job that found nothing waits, whatever its first calls met."""
TRY_S = 1.5 * HASTY.wait_longest_s + 450.0
"""Within this time every job that waits is tried for, or is forgotten where nobody waits."""
CALLS = (
    "dynamodb:Query",
    "dynamodb:PutItem",
    "dynamodb:DeleteItem",
    "ec2:DescribeInstances",
    "ec2:RunInstances",
    "ec2:CreateTags",
    "stepfunctions:SendTaskHeartbeat",
    "stepfunctions:SendTaskSuccess",
    "stepfunctions:SendTaskFailure",
    "s3:PutObject",
)
WHAT = st.sampled_from([*FAULTS, *Death, "pause"])
WAITS_H = st.sampled_from([0.5, 2.0, 24.0])


class WaitingJobs(Jobs):
    """Two executions that wait for capacity when it begins."""

    @initialize(
        seed=st.integers(0, 2**32),
        first=WAITS_H,
        second=WAITS_H,
        nodes=st.sampled_from([1, 2]),
        apart=st.sampled_from([0, 1, 40]),
    )
    def two_begin(self, seed: int, first: float, second: float, nodes: int, apart: int) -> None:  # type: ignore[override]
        self.world = JobsWorld(seed, timing=HASTY)
        self.capacity_is_away()
        for name, hours in (("a", first), ("a0", second)):
            self.world.ask(name, nodes=nodes, max_hours=24.0, max_wait_hours=hours)
            self.world.run(apart)
        self.world.run(AWAY_S)
        assert len(self.waiting()) == 2

    def waiting(self) -> list[Run]:
        return [run for run in self.world.going() if run.execution.state == WAIT]

    @rule()
    def capacity_is_away(self) -> None:
        for ec2 in self.world.aws.ec2.values():
            ec2.capacity = {(kind, zone): 0 for kind in KINDS for zone in ec2.catalogue.zones}

    @rule(seconds=st.sampled_from([310, 900]))
    @precondition(lambda self: self.waiting())
    def long_times_pass(self, seconds: int) -> None:
        self.world.run(seconds)

    @rule()
    @precondition(lambda self: self.waiting())
    def a_person_stops_one_that_waits(self) -> None:
        self.world.stop(self.waiting()[0])

    @rule(apart_s=st.sampled_from([0.0, 0.0, 0.3, 5.0]))
    def the_clock_wakes_two_at_once(self, apart_s: float) -> None:
        self.world.tick()
        self.world.run(apart_s)
        self.world.tick()

    @rule(which=st.integers(0, 3))
    @precondition(lambda self: self.world.tokens)
    def a_token_comes_again(self, which: int) -> None:
        self.world.token_again(which)

    @rule(name=st.sampled_from(CALLS), nth=st.sampled_from([1, 1, 2, 4]), what=WHAT)
    def a_turn_will_meet(self, name: str, nth: int, what: Kind | Death | str) -> None:
        clock = self.world.clock
        match what:
            case Kind():
                mishap = Mishap(name, nth, fault=what)
            case Death():
                mishap = Mishap(name, nth, death=what)
            case _:
                mishap = Mishap(name, nth, meanwhile=lambda: clock.spend(45.0))
        self.world.armed["launcher"] = mishap

    @rule(stopped=st.booleans())
    @precondition(lambda self: self.waiting())
    def somebody_is_stopped_or_freed_during_a_try(self, *, stopped: bool) -> None:
        """Right before the launch call of the next turn."""
        (run, *_) = self.waiting()
        action = (lambda: self.world.stop(run)) if stopped else self.world.heal
        self.world.armed["launcher"] = Mishap("ec2:RunInstances", meanwhile=action)

    def _ends_well(self) -> None:
        """As of all jobs; and of one that was stopped while it waited nothing is left once its next try was due."""
        self.world.heal()
        self.world.run(TRY_S)
        super()._ends_well()


@pytest.mark.timeout(0)
@pytest.mark.parametrize("number", numbers(ROUNDS, quick=1))
def test_every_job_that_waits_ends_for_its_own_reason(number: int) -> None:
    class Round(WaitingJobs):
        pass

    play(number, Round, examples=EXAMPLES, steps=STEPS)
