"""The reaper under everything that can go wrong, among instances that look like ours and are not: what it ends it may end (I2, I3),
what is past its deadline is gone in time (I1), and with nothing in its way everything that is left over is (I8, I9)."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from contract import tags
from localaws.services.ec2_instance import Machine
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.reaping import HOUR, our_tags
from tests.properties.reaper_world import ACTS, DEPLOYMENTS, PROFILES, READS, World
from tests.properties.rounds import ROUNDS, numbers, play

PLACE = st.integers(0, 1)
AGES = st.sampled_from([-200.0, 0.0, 300.0, 590.0, 700.0, 7200.0, 100 * HOUR, 102 * HOUR, 200 * HOUR])
DEADLINES = st.sampled_from([-86_400.0, -HOUR, -130.0, -110.0, 60.0, 400.0, 1000.0, HOUR, 20 * HOUR])
GARBLED = st.sampled_from(["", "soon", "0", "24", "-1", "1e12", "1800000000000", " 1800000000", "9" * 12, "²"])
OUTAGES = (
    "stepfunctions:*",
    "stepfunctions:*",
    "stepfunctions:DescribeExecution",
    "dynamodb:*",
    "ec2:DescribeVolumes",
    "sns:*",
)
NTH = st.sampled_from([1, 1, 2, 3, 5, 8, 13])


class Reaped(RuleBasedStateMachine):
    """A region or two, a few executions, and instances of all kinds."""

    two_regions: ClassVar[bool]
    in_pieces: ClassVar[bool]

    def __init__(self) -> None:
        super().__init__()
        self.world = World(two_regions=self.two_regions, in_pieces=self.in_pieces)

    def teardown(self) -> None:
        try:
            if not self.world.surprises:
                self._ends_well()
        finally:
            self.world.close()

    @initialize(age=st.sampled_from([700.0, 7200.0]), deadline=DEADLINES, count=st.integers(1, 8))
    def a_job_runs(self, age: float, deadline: float, count: int) -> None:
        for _ in range(count):
            self._launch(0, age, {tags.DEADLINE: str(int(self.world.now + deadline))})

    # Instances

    def _launch(self, place: int, age: float, marks: dict[str, str], job: int = 0, profile: str | None = None) -> None:
        world = self.world
        execution = world.jobs[job % len(world.jobs)]
        usual = our_tags(execution=execution.arn, deadline=world.now + HOUR, job=execution.name)
        more = {} if profile is None else {"profile": profile}
        world.launch(place, usual | marks, age=age, **more)

    @rule(place=PLACE, age=AGES, deadline=DEADLINES, job=st.integers(0, 3), count=st.integers(1, 3))
    def ours_is_launched(self, place: int, age: float, deadline: float, job: int, count: int) -> None:
        for _ in range(count):
            self._launch(place, age, {tags.DEADLINE: str(int(self.world.now + deadline))}, job)

    @rule(
        place=PLACE,
        age=AGES,
        marks=st.sampled_from(DEPLOYMENTS),
        profile=st.sampled_from(PROFILES),
        ours=st.booleans(),
    )
    def a_stranger_appears(self, place: int, age: float, marks: dict[str, str], profile: str, ours: bool) -> None:
        """With every tag of ours but the one, its deadline long past, under a profile that is like ours."""
        world = self.world
        more = our_tags(execution=world.jobs[0].arn, deadline=world.now - 5 * HOUR) if ours else {}
        more.pop(tags.DEPLOYMENT, None)
        world.launch(place, more | marks, age=age, profile=profile)

    @rule(place=PLACE, age=AGES, marks=st.sampled_from(DEPLOYMENTS))
    def something_else_runs_under_our_profile(self, place: int, age: float, marks: dict[str, str]) -> None:
        self.world.launch(place, dict(marks), age=age)

    @rule(place=PLACE, age=AGES, deadline=GARBLED, execution=st.sampled_from(["", "x", "other", "none", "ours"]))
    def ours_has_garbled_tags(self, place: int, age: float, deadline: str, execution: str) -> None:
        ours = self.world.jobs[0].arn
        named = {"other": ours.replace("yard-train", "other-train"), "none": ours + "/../x", "ours": ours}
        marks = {tags.DEADLINE: deadline, tags.EXECUTION: named.get(execution, execution)}
        self._launch(place, age, marks)

    @rule(
        which=st.integers(0, 40),
        what=st.sampled_from(["protect", "unprotect", "lose", "rename", "give", "stop", "stick", "unstick", "refuse"]),
    )
    @precondition(lambda self: self.world.machines())
    def somebody_touches_an_instance(self, which: int, what: str) -> None:
        machines = self.world.machines()
        machine: Machine = machines[which % len(machines)]
        match what:
            case "protect":
                self.world.retag(machine, {tags.PROTECTED: ""})
            case "unprotect":
                self.world.retag(machine, {}, remove=tags.PROTECTED)
            case "lose":
                self.world.retag(machine, {}, remove=tags.DEPLOYMENT)
            case "rename":
                self.world.retag(machine, {tags.DEPLOYMENT: "other"})
            case "give":
                self.world.retag(machine, {tags.EXECUTION: self.world.jobs[-1].arn})
            case "stop":
                machine.stopped_at = self.world.now
            case "stick":
                machine.stuck = True
            case "unstick":
                machine.stuck = machine.protected = False
                self.world.retag(machine, {})
            case "refuse":
                machine.protected = True
        if what in {"stick", "refuse"}:
            for one in machines:  # one that refuses holds up what is told to end with it
                self.world.changed_at[one.id] = self.world.now

    # Executions

    @rule()
    def a_job_begins(self) -> None:
        if len(self.world.jobs) < 4:
            self.world.jobs.append(self.world.executions.begin(f"job-{len(self.world.jobs)}"))

    @rule(which=st.integers(0, 3), status=st.sampled_from(["SUCCEEDED", "FAILED", "ABORTED", "TIMED_OUT"]))
    def an_execution_ends(self, which: int, status: str) -> None:
        execution = self.world.jobs[which % len(self.world.jobs)]
        if execution.status == "RUNNING":
            self.world.executions.end(execution, status)

    @rule(which=st.integers(0, 3), redriven=st.booleans())
    def an_execution_is_redriven_or_forgotten(self, which: int, redriven: bool) -> None:
        world = self.world
        execution = world.jobs[which % len(world.jobs)]
        if execution.status != "RUNNING" and execution.arn in world.executions.known:
            if redriven:
                world.executions.redrive(execution)
            elif which % len(world.jobs):
                del world.executions.known[execution.arn]
                world.gone_at[execution.arn] = world.now

    # Time, weather, passes

    @rule(
        lag=st.sampled_from([0.5, 20.0]), size=st.sampled_from([1000, 7]), life=st.sampled_from([3600.0, 3600.0, 0.0])
    )
    def reads_lag_and_pages_are_short(self, lag: float, size: int, life: float) -> None:
        for ec2 in self.world.regions:
            ec2.lag_s, ec2.pages.size, ec2.pages.life_s = lag, size, life

    @rule(shuffled=st.randoms(use_true_random=False))
    def ec2_lists_in_another_order(self, shuffled: Any) -> None:
        for ec2 in self.world.regions:
            order = list(ec2.machines.items())
            shuffled.shuffle(order)
            ec2.machines = dict(order)

    @rule(name=st.sampled_from([*OUTAGES, "", ""]), kind=st.sampled_from([Kind.DENIED, Kind.DENIED, Kind.THROTTLED]))
    def a_service_goes_or_comes_back(self, name: str, kind: Kind) -> None:
        self.world.aws.faults.waiting.clear()
        if name:
            self.world.aws.faults.add(kind, name, times=1_000_000)

    @rule(skew=st.sampled_from([-300.0, 0.0, 300.0]))
    def the_functions_clock_is_wrong(self, skew: float) -> None:
        self.world.reaping.clock.skew_s = skew

    @rule(seconds=st.sampled_from([30, 130, 250, 700, 3 * 3600]))
    def the_reaper_does_not_look_for_a_while(self, seconds: int) -> None:
        self.world.silence(seconds)

    @rule(
        name=st.sampled_from(READS + ACTS),
        nth=NTH,
        what=st.sampled_from([*Kind, *Kind, *Death, "pass", "pause"]),
        times=st.sampled_from([1, 4, 30]),
    )
    def the_next_pass_will_meet(self, name: str, nth: int, what: Kind | Death | str, times: int) -> None:
        match what:
            case Kind():
                mishap = Mishap(name, nth, times, fault=what)
            case Death():
                mishap = Mishap(name, nth, death=what)
            case "pass":
                mishap = Mishap(name, nth, meanwhile=self._beside)
            case _:
                mishap = Mishap(name, nth, meanwhile=lambda: self.world.aws.clock.spend(270.0))
        self.world.armed.append(mishap)

    def _beside(self) -> None:
        self.world.reaping.run()

    @rule()
    def five_minutes_later_the_reaper_looks(self) -> None:
        self.world.scheduled()

    @rule(times=st.integers(2, 3))
    def it_looks_several_times(self, times: int) -> None:
        for _ in range(times):
            self.world.scheduled()

    @rule()
    def it_looks_once_more_at_once(self) -> None:
        self.world.run_pass()

    @rule()
    def it_looks_in_report_only_mode(self) -> None:
        self.world.report_only()

    # What must hold

    @invariant()
    def all_is_well(self) -> None:
        assert self.world.surprises == []
        assert self.world.overdue() == []

    def _ends_well(self) -> None:
        """With nothing in its way the reaper ends whatever is left over, five at least a pass, and then has nothing to do."""
        world = self.world
        world.heal()
        since = world.now
        self._launch(0, 700.0, {tags.DEADLINE: str(int(world.now + 200))})  # a deadline that passes while all is well
        for _ in range(4 + len(world.orphans(since - 600)) // 5):
            world.scheduled()
            self.all_is_well()
        assert world.orphans(since - 600) == []
        before = {machine.id: machine.ending_at for machine in world.machines()}
        world.run_pass()
        early = [machine for machine in world.machines() if not world.late(machine)]
        assert [machine.id for machine in early if machine.ending_at != before[machine.id]] == []
        assert world.surprises == []


@pytest.mark.timeout(0)
@pytest.mark.parametrize("number", numbers(ROUNDS, quick=2))
def test_the_reaper_ends_what_it_may_and_nothing_else_whatever_happens(number: int) -> None:
    class Round(Reaped):
        two_regions, in_pieces = number % 3 == 0, number % 2 == 0

    play(number, Round)
