"""Launcher, attendant and terminator under everything that can go wrong: whatever the order, no node is left over, none is
doubled, none of somebody else's is touched, and the execution ends (invariants I3, I4, I5 and I8)."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from contract import tags
from contract.reports import Exit
from tests.fakes.faults import Death, Kind, Mishap
from tests.properties.world import World

COMMON = settings(
    stateful_step_count=50, deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=True
)
PROFILES = {
    "suite": settings(COMMON, max_examples=100, derandomize=True),
    "deep": settings(COMMON, max_examples=2000),
}
PROFILE = PROFILES[os.environ.get("HYPOTHESIS_PROFILE", "suite")]
"""`make test-deep` sets the other one."""
LAUNCHER = (
    "s3:GetObject",
    "s3:ListObjectsV2",
    "s3:PutObject",
    "s3:HeadObject",
    "ec2:DescribeInstances",
    "ec2:RunInstances",
    "ec2:RunInstances",
    "ec2:CreateTags",
)
ATTENDANT = ("s3:*", "s3:PutObject", "ec2:DescribeInstances", "stepfunctions:*")
TERMINATOR = ("s3:PutObject", "s3:[GL]*", "ec2:DescribeInstances", "ec2:DescribeInstances", "ec2:TerminateInstances")
NTH = st.sampled_from([1, 1, 2, 3, 4])
WHAT = st.sampled_from(
    [*Kind, *Kind, *Death, "launch", "terminate", "tick", "pause", "node dies", "given up", "given up"]
)
"""What befalls a call: a fault, the end of the function, or something that somebody else does just before it."""
TEN_MINUTES = 600.0


class Spine(RuleBasedStateMachine):
    """One job, from its launch to its end."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    def teardown(self) -> None:
        try:
            if not self.world.surprises:
                self._ends_well()
        finally:
            self.world.close()

    # Time and weather

    @rule(seconds=st.sampled_from([1, 5, 20]))
    def moments_pass(self, seconds: int) -> None:
        self.world.run(seconds)

    @rule()
    def a_minute_passes(self) -> None:
        self.world.run(61)

    @rule(seconds=st.sampled_from([130, 320]))
    def minutes_pass(self, seconds: int) -> None:
        self.world.run(seconds)

    @rule(weather=st.sampled_from(["fair", "lost", "late", "doubled"]), dead=st.sampled_from([False, False, True]))
    def events_and_attendant_are(self, weather: str, dead: bool) -> None:
        self.world.weather, self.world.attendant_dead = weather, dead

    @rule(lag=st.sampled_from([0.5, 3.0, 20.0]), invisible=st.sampled_from([0.0, 1.0, 4.0]))
    def reads_lag(self, lag: float, invisible: float) -> None:
        self.world.ec2.lag_s, self.world.ec2.invisible_s = lag, invisible

    @rule(place=st.integers(0, 30))
    @precondition(lambda self: self.world.events)
    def an_event_comes_again(self, place: int) -> None:
        self.world.invoke("attendant", self.world.events[-1 - place % len(self.world.events)])

    # Calls and functions

    @rule(name=st.sampled_from(LAUNCHER), nth=NTH, what=WHAT, times=st.sampled_from([1, 9]))
    def a_launcher_will_meet(self, name: str, nth: int, what: Kind | Death | str, times: int) -> None:
        self._arm("launcher", name, nth, what, times)

    @rule(name=st.sampled_from(ATTENDANT), nth=NTH, what=WHAT, times=st.sampled_from([1, 9]))
    def an_attendant_will_meet(self, name: str, nth: int, what: Kind | Death | str, times: int) -> None:
        self._arm("attendant", name, nth, what, times)

    @rule(name=st.sampled_from(TERMINATOR), nth=NTH, what=WHAT, times=st.sampled_from([1, 9]))
    def a_terminator_will_meet(self, name: str, nth: int, what: Kind | Death | str, times: int) -> None:
        self._arm("terminator", name, nth, what, times)

    def _arm(self, function: str, name: str, nth: int, what: Kind | Death | str, times: int) -> None:
        match what:
            case Kind():
                mishap = Mishap(name, nth, times, fault=what)
            case Death():
                mishap = Mishap(name, nth, death=what)
            case _:
                mishap = Mishap(name, nth, meanwhile=lambda: self._other(what))
        self.world.armed.setdefault(function, []).append(mishap)

    def _other(self, other: str) -> None:
        world, attempt = self.world, self.world.execution.attempt
        match other:
            case "launch":
                world.launch(attempt)
            case "terminate" if attempt in world.execution.terminating:
                world.terminate(attempt)
            case "tick":
                world.tick()
            case "pause":
                world.aws.clock.spend(45.0)
            case "given up":
                world.execution.give_up()
                world.aws.clock.spend(100.0)
            case "node dies" if world.living():
                world.ec2.end(world.living()[-1].machine, "Server.InternalError", "Server.InternalError: host failed")

    # Steps done again, at once or long after

    @rule(back=st.integers(0, 2))
    def launch_again(self, back: int) -> None:
        execution = self.world.execution
        attempt = max(1, execution.attempt - back)
        outcome = self.world.launch(attempt)
        if not outcome.error and attempt in execution.launched:
            assert tuple(outcome.value["instances"]) == execution.launched[attempt]

    @rule(back=st.integers(0, 2))
    def terminate_again(self, back: int) -> None:
        attempt = max(1, self.world.execution.attempt - back)
        if attempt in self.world.execution.terminating:
            self.world.terminate(attempt)

    @rule()
    @precondition(lambda self: self.world.execution.wait is not None)
    def the_token_comes_again(self) -> None:
        execution = self.world.execution
        assert execution.wait is not None
        event = {"door": "token", "job": execution.job.id, "attempt": execution.attempt, "token": execution.wait.token}
        self.world.invoke("attendant", event)

    # Capacity

    @rule(
        kind=st.sampled_from(["g5.xlarge", "g4dn.xlarge"]),
        zone=st.sampled_from(["eu-central-1a", "eu-central-1b"]),
        free=st.sampled_from([0, 1, 100]),
        quota=st.sampled_from([None, None, None, 4]),
    )
    def capacity_changes(self, kind: str, zone: str, free: int, quota: int | None) -> None:
        self.world.ec2.capacity[kind, zone], self.world.ec2.vcpu_quota = free, quota

    # Nodes

    @rule(which=st.integers(0, 3), code=st.sampled_from([0, 0, 0, 1]))
    @precondition(lambda self: self.world.living())
    def a_node_ends(self, which: int, code: int) -> None:
        nodes = self.world.living()
        self.world.leave(nodes[which % len(nodes)], Exit(code=code))

    @rule(which=st.integers(0, 3))
    @precondition(lambda self: self.world.living())
    def a_node_dies(self, which: int) -> None:
        nodes = self.world.living()
        self.world.ec2.end(
            nodes[which % len(nodes)].machine, "Server.InternalError", "Server.InternalError: host failed"
        )

    @rule(which=st.integers(0, 3))
    @precondition(lambda self: self.world.living())
    def a_node_falls_silent(self, which: int) -> None:
        nodes = self.world.living()
        nodes[which % len(nodes)].silent = True

    # What must hold

    @invariant()
    def all_is_well(self) -> None:
        world, now = self.world, self.world.aws.clock.now
        assert world.surprises == []
        assert [one.tags for one in world.strangers if one.state(now) != "running"] == [], "a stranger was ended"
        self._one_whole_cluster_at_most()
        self._nothing_ends_before_its_attempt_is_to_end()
        left = [one.id for one in world.ours() if int(one.tags[tags.ATTEMPT]) in world.execution.terminated]
        assert left == [], f"Terminate succeeded and {left} run"

    def _one_whole_cluster_at_most(self) -> None:
        """I4: N nodes of one launch. Nodes may have died since."""
        running: dict[str, set[str]] = {}
        for machine in self.world.ours():
            running.setdefault(machine.tags[tags.ATTEMPT], set()).add(machine.reservation)
        assert all(len(launches) == 1 for launches in running.values()), f"two clusters of one attempt: {running}"
        assert len(running) <= 1, f"attempts {sorted(running)} run at the same time"

    def _nothing_ends_before_its_attempt_is_to_end(self) -> None:
        """I3: Terminate ends the nodes of its own attempt, and of those before."""
        entered = max(self.world.execution.terminating, default=0)
        for machine in self.world.ec2.machines.values():
            if machine.why[0] == "Client.UserInitiatedShutdown":
                assert int(machine.tags[tags.ATTEMPT]) <= entered, f"{machine.id} was ended while its attempt ran"

    def _ends_well(self) -> None:
        """I4, I5: with nothing more going wrong, the execution ends, and ten minutes later nothing is left."""
        world = self.world
        world.heal()
        for _ in range(60):
            if world.execution.over:
                break
            for node in world.living():
                world.leave(node, Exit(code=0))
            world.run(120.0)
        assert world.execution.over, f"still in {world.execution.state}"
        world.run(TEN_MINUTES)
        assert [one.id for one in world.ours()] == []
        self._again_changes_nothing()

    def _again_changes_nothing(self) -> None:
        """I8: every step once more leaves everything as it is."""
        world = self.world
        world.armed.clear()
        before = len(world.ec2.machines)
        for attempt in range(1, world.execution.attempt + 1):
            world.launch(attempt)
            assert world.terminate(attempt).error == ""
        world.tick()
        assert len(world.ec2.machines) == before, "a late launch launched"
        assert world.surprises == []


@pytest.mark.timeout(0)
def test_the_spine_holds_whatever_happens_in_whatever_order() -> None:
    run_state_machine_as_test(Spine, settings=PROFILE)
