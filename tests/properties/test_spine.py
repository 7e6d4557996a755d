"""Launcher, attendant and terminator under everything that can go wrong: whatever the order, no node is left over, none is
doubled, none of somebody else's is touched, and the execution ends for a reason that the world gave it
(invariants I3, I4, I5 and I8)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)

from contract import tags
from contract.jobs import Rung
from contract.reports import Exit
from localaws.services.dynamodb_state import Knobs
from tests.builders import PLACE
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.yard import ABROAD
from tests.properties.rounds import ROUNDS, numbers, play
from tests.properties.world import LADDER, World, outage

LAUNCHER = (
    "dynamodb:GetItem",
    "dynamodb:Query",
    "dynamodb:PutItem",
    "dynamodb:*",
    "ec2:DescribeInstances",
    "ec2:RunInstances",
    "ec2:RunInstances",
    "ec2:CreateTags",
)
ATTENDANT = (
    "dynamodb:*",
    "dynamodb:PutItem",
    "dynamodb:BatchGetItem",
    "ec2:DescribeInstances",
    "stepfunctions:*",
    "lambda:*",
)
TERMINATOR = (
    "s3:PutObject",
    "dynamodb:PutItem",
    "dynamodb:[GQ]*",
    "ec2:DescribeInstances",
    "ec2:DescribeInstances",
    "ec2:TerminateInstances",
)
FUNCTIONS = ("launcher", "attendant", "artifact_check", "terminator")
SYNC = ("dynamodb:[GQ]*", "dynamodb:BatchGetItem", "s3:GetObject", "s3:ListObjectsV2", "s3:PutObject")
NTH = st.sampled_from([1, 1, 2, 3, 4])
WHAT = st.sampled_from(
    [*Kind, *Kind, *Death, "launch", "terminate", "tick", "pause", "node dies", "given up", "given up for good"]
)
"""What befalls a call: a fault, the end of the function, or something that somebody else does just before it."""
SOON = st.sampled_from([0, 0, 1, 20])
"""Seconds: time goes on in every example, whichever rules hypothesis leaves out of it."""
Mishaps = tuple[tuple[str, int, Kind | Death | str], ...]


@dataclass(frozen=True, slots=True)
class Start:
    """What befalls a function's first invocation, its second, and so on: what random mishaps seldom bring together."""

    launcher: Mishaps = ()
    attendant: Mishaps = ()
    terminator: Mishaps = ()
    abroad_first: bool = False


REGIONS = [PLACE.region, ABROAD.region]
"""In the place of a call's name: all calls of EC2 there."""
STARTS = (
    Start(),
    Start(abroad_first=True),
    Start(attendant=(("ec2:DescribeInstances", 1, "node dies"),)),
    Start(launcher=(("dynamodb:PutItem", 1, Kind.DENIED),), terminator=(("dynamodb:PutItem", 1, Kind.DENIED),)),
    Start(
        launcher=(("dynamodb:PutItem", 1, Kind.LOST), ("dynamodb:PutItem", 2, Kind.ERROR_AFTER)),
        terminator=(("ec2:TerminateInstances", 1, Kind.LOST), ("dynamodb:Query", 1, Kind.DENIED)),
    ),
    Start(launcher=(("ec2:RunInstances", 1, Death.AFTER), ("dynamodb:GetItem", 1, "node dies"))),
    Start(launcher=(("ec2:RunInstances", 1, "given up for good"),)),
    Start(launcher=(("ec2:CreateTags", 1, Kind.DENIED),)),
    Start(launcher=(("ec2:CreateTags", 1, "given up"),), terminator=(("ec2:TerminateInstances", 1, "given up"),)),
    Start(terminator=((PLACE.region, 1, Kind.UNREACHABLE), (PLACE.region, 1, Kind.ERROR)), abroad_first=True),
)
MACHINE_TROUBLE_S = [130.0, 200.0]
"""Longer than two minutes; with what else a Terminate may have to wait for, shorter than its patience."""
A_LAUNCH_AND_MORE_S = 1300.0
"""Longer than the machine tries to get through to a launcher: 2 + 4 + 8 + 16 + 32 + 19 x 60 s."""
TEN_MINUTES = 600.0


class Spine(RuleBasedStateMachine):
    """One job, from its launch to its end."""

    start: ClassVar[Start]

    def __init__(self) -> None:
        super().__init__()
        self.world = World(abroad_first=self.start.abroad_first)
        self._troubled_until = 0.0
        for function in FUNCTIONS:
            for after, (name, nth, what) in enumerate(getattr(self.start, function, ())):
                self._arm(function, name, nth, what, after=after)

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

    @rule(seconds=st.sampled_from([61, 61, 130, 310]))
    def minutes_pass(self, seconds: int) -> None:
        self.world.run(seconds)

    @rule(weather=st.sampled_from(["fair", "lost", "late", "doubled"]), dead=st.sampled_from([False, False, True]))
    def events_and_attendant_are(self, weather: str, dead: bool) -> None:
        self.world.weather, self.world.attendant_dead = weather, dead

    @rule(lag=st.sampled_from([0.5, 3.0, 20.0]), invisible=st.sampled_from([0.0, 1.0, 4.0]))
    def reads_lag(self, lag: float, invisible: float) -> None:
        for ec2 in self.world.ec2s:
            ec2.lag_s, ec2.invisible_s = lag, invisible

    @rule(
        lag_s=st.sampled_from([0.0, 1.0, 3.0]),
        throttled=st.sampled_from([0.0, 0.03, 0.2]),
        short=st.sampled_from([0.0, 0.5, 1.0]),
        conflicts=st.sampled_from([0, 1, 3]),
    )
    def the_table_is(self, lag_s: float, throttled: float, short: float, conflicts: int) -> None:
        """`conflicts`: so many writes of whoever comes first meet somebody's transaction."""
        self.world.aws.table.knobs = Knobs(
            lag_s=lag_s, throttled=throttled, short_pages=short, unprocessed=short / 2, conflicts=conflicts
        )

    @rule(
        region=st.sampled_from(REGIONS),
        seconds=st.sampled_from([30, 200]),
        kind=st.sampled_from([Kind.UNREACHABLE, Kind.ERROR]),
    )
    def a_region_is_out(self, region: str, seconds: int, kind: Kind) -> None:
        self.world.troubled.add("launcher")
        self.world.outages[region] = (self.world.aws.clock.now + seconds, kind)

    @rule(
        function=st.sampled_from(FUNCTIONS),
        seconds=st.sampled_from(MACHINE_TROUBLE_S),
        nth=st.sampled_from([0, 1, 2, 4]),
    )
    @precondition(lambda self: self.world.aws.clock.now > self._troubled_until)
    def the_machine_does_not_get_through(self, function: str, seconds: float, nth: int) -> None:
        """Lambda throttles it, or kills every invocation at the same call; not again while a Terminate may have its effects."""
        now = self.world.aws.clock.now
        self.world.troubled.add(function)
        self._troubled_until = now + seconds + self.world.job.timing.terminate_patience_s
        if nth:
            self.world.doomed[function] = (now + seconds, nth)
        else:
            self.world.execution.throttle(function, seconds)

    @rule(place=st.integers(0, 30))
    @precondition(lambda self: self.world.events)
    def an_event_comes_again(self, place: int) -> None:
        self.world.invoke("attendant", self.world.events[-1 - place % len(self.world.events)])

    # Calls and functions

    @rule(name=st.sampled_from(LAUNCHER), nth=NTH, what=WHAT, times=st.sampled_from([1, 9]), then_s=SOON)
    def a_launcher_will_meet(self, name: str, nth: int, what: Kind | Death | str, times: int, then_s: int) -> None:
        self._arm("launcher", name, nth, what, times)
        self.world.run(then_s)

    @rule(name=st.sampled_from(ATTENDANT), nth=NTH, what=WHAT, times=st.sampled_from([1, 9]), then_s=SOON)
    def an_attendant_will_meet(self, name: str, nth: int, what: Kind | Death | str, times: int, then_s: int) -> None:
        self._arm("attendant", name, nth, what, times)
        self.world.run(then_s)

    @rule(name=st.sampled_from(TERMINATOR), nth=NTH, what=WHAT, times=st.sampled_from([1, 9]), then_s=SOON)
    def a_terminator_will_meet(self, name: str, nth: int, what: Kind | Death | str, times: int, then_s: int) -> None:
        self._arm("terminator", name, nth, what, times)
        self.world.run(then_s)

    @rule(name=st.sampled_from(SYNC), nth=NTH, what=WHAT, times=st.sampled_from([1, 9]), then_s=SOON)
    def a_sync_will_meet(self, name: str, nth: int, what: Kind | Death | str, times: int, then_s: int) -> None:
        self._arm("artifact_check", name, nth, what, times)
        self.world.run(then_s)

    def _arm(
        self, function: str, name: str, nth: int, what: Kind | Death | str, times: int = 1, *, after: int = 0
    ) -> None:
        match what:
            case Kind() if name in REGIONS:
                mishap = outage(name, what)
            case Kind():
                mishap = Mishap(name, nth, times, fault=what)
            case Death():
                mishap = Mishap(name, nth, death=what)
            case _:
                mishap = Mishap(name, nth, meanwhile=lambda: self._other(what))
        self.world.arm(function, mishap, after=after)

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
            case "given up for good":
                world.execution.give_up(A_LAUNCH_AND_MORE_S if world.execution.state == "Launch" else 0.0)
                world.aws.clock.spend(290.0)
            case "node dies" if world.living():
                world.break_down(world.living()[-1].machine)

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
        token, job = execution.wait.token, execution.id
        self.world.invoke("attendant", {"action": "token", "job": job, "attempt": execution.attempt, "token": token})

    # Capacity

    @rule(
        wanted=st.sampled_from(LADDER), free=st.sampled_from([0, 1, 100]), quota=st.sampled_from([None, None, None, 4])
    )
    def capacity_changes(self, wanted: Rung, free: int, quota: int | None) -> None:
        ec2 = self.world.aws.ec2[wanted.region]
        ec2.capacity[wanted.instance_type, wanted.zone], ec2.vcpu_quota = free, quota
        self.world.scarce |= free < self.world.job.nodes or quota is not None

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
        self.world.break_down(nodes[which % len(nodes)].machine)

    @rule()
    @precondition(lambda self: self.world.living() and self.world.execution.state == "Train")
    def the_cluster_is_taken_away(self) -> None:
        """All nodes at once; a minute later the attendant knows."""
        for node in self.world.living():
            self.world.break_down(node.machine)
        self.world.run(61)

    @rule(which=st.integers(0, 3))
    @precondition(lambda self: len(self.world.living()) > 1)
    def a_person_protects_a_node(self, which: int) -> None:
        nodes = self.world.living()
        self.world.protect(nodes[which % len(nodes)].machine)

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
        for machine in self.world.every():
            if machine.why[0] == "Client.UserInitiatedShutdown":
                assert int(machine.tags[tags.ATTEMPT]) <= entered, f"{machine.id} was ended while its attempt ran"
                since = self.world.protected.get(machine.id, math.inf)
                assert machine.ending_at <= since, f"{machine.id} was ended though a person protects it"

    def _ends_well(self) -> None:
        """I4, I5: with nothing more going wrong, the execution ends, and ten minutes later nothing is left."""
        world = self.world
        world.heal()
        for _ in range(120):
            if world.execution.over:
                break
            for node in world.living():
                world.leave(node, Exit(code=0))
            world.run(61.0)
            self.all_is_well()
        assert world.execution.over, f"still in {world.execution.state}"
        world.attendant_dead = True
        world.run(TEN_MINUTES)
        assert [one.id for one in world.ours()] == []
        self._again_changes_nothing()

    def _again_changes_nothing(self) -> None:
        """I8: every step once more leaves everything as it is."""
        world = self.world
        world.armed.clear()
        before = len(world.every())
        for attempt in range(1, world.execution.attempt + 1):
            world.launch(attempt)
        assert world.terminate(world.execution.attempt).error == ""
        world.tick()
        assert len(world.every()) == before, "a late launch launched"
        self.all_is_well()


@pytest.mark.timeout(0)
@pytest.mark.parametrize("number", numbers(ROUNDS, quick=2))
def test_the_spine_holds_whatever_happens_in_whatever_order(number: int) -> None:
    class Round(Spine):
        start = STARTS[number % len(STARTS)]

    play(number, Round)
