"""What may happen to several jobs beside each other, as the rules of a property test, and what must hold at every moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from contract.jobs import Reaction
from contract.reports import Exit
from contract.roles import RoleEnd
from tests.builders import ADMISSION
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.yard import ABROAD
from tests.properties.jobs_oracle import RETRIED_CODE
from tests.properties.jobs_world import JobsWorld, Run
from tests.properties.world import Node

NAMES = ("a", "a0", "b")
"""One the beginning of another."""
CALLS = {
    "admission": ("s3:GetObject", "s3:PutObject", "s3:CopyObject", "dynamodb:*", "dynamodb:PutItem", "ssm:*", "ec2:*"),
    "launcher": ("dynamodb:GetItem", "dynamodb:PutItem", "ec2:DescribeInstances", "ec2:RunInstances", "ec2:CreateTags"),
    "attendant": ("dynamodb:*", "dynamodb:BatchGetItem", "ec2:DescribeInstances", "stepfunctions:*", "lambda:Invoke"),
    "artifact_check": ("dynamodb:*", "s3:GetObject", "s3:ListObjectsV2", "s3:PutObject"),
    "terminator": (
        "dynamodb:PutItem",
        "dynamodb:[GQ]*",
        "s3:PutObject",
        "ec2:DescribeInstances",
        "ec2:TerminateInstances",
    ),
}
CALL = st.sampled_from([(function, call) for function, calls in CALLS.items() for call in calls])
FAULTS = [kind for kind in Kind if kind is not Kind.DENIED]
WHAT = st.sampled_from([*FAULTS, *Death, "pause", "pause", "given up", "given up"])
WHICH = st.integers(0, 3)
ZONE = st.sampled_from(["eu-central-1a", "eu-central-1b", "eu-central-1c", "eu-west-1a"])
KINDS = ("g5.xlarge", "g4dn.xlarge")
RETRIES = {"times": 1, "exit_codes": [RETRIED_CODE]}
STALLS = [{"minutes": 5.0, "then": then.value} for then in Reaction]
CAPS = [2.6, 3.0, 6.0]
REQUEST = st.fixed_dictionaries(
    {
        "nodes": st.sampled_from([1, 2, 2]),
        "instance_types": st.sampled_from([["g5.xlarge"], ["g5.xlarge"], ["g4dn.xlarge", "g5.xlarge"]]),
        "max_hours": st.sampled_from([24.0, 24.0, 0.5]),
    },
    optional={
        "region": st.just(ABROAD.region),
        "retries": st.just(RETRIES),
        "max_cost_usd": st.sampled_from(CAPS),
        "stall": st.sampled_from(STALLS),
        "market": st.sampled_from(["spot", "spot-then-on-demand"]),
    },
)


@dataclass(frozen=True, slots=True)
class Start:
    """What befalls each of the first two executions, which random steps seldom bring together."""

    meets: tuple[tuple[str, str, Kind | Death | str], ...] = ()
    """Function, call, and what befalls the first of such calls in the function's first invocation."""
    breaks: bool = False
    """A node of the first attempt breaks as soon as it trains."""
    free: int | None = None
    """Instances that can run in each zone."""
    losses: int = 0
    """In so many attempts of the first execution a node breaks once they have closed a checkpoint."""
    cap: float | None = None
    """What the first execution may cost."""
    fails: bool = False
    """Then its command fails, with an exit code that its request retries."""
    stall: Reaction | None = None
    """What the first execution asks for where its training makes no progress; it makes none from its first attempt on."""
    redriven_s: float | None = None
    """The first execution is stopped while it trains, and goes on so much later."""


STARTS = (
    Start(),
    Start(meets=(("admission", "s3:PutObject", "given up"), ("launcher", "ec2:RunInstances", "given up"))),
    Start(meets=(("terminator", "ec2:DescribeInstances", "given up"),), breaks=True),
    Start(free=2),
    Start(
        meets=(
            ("admission", "s3:CopyObject", Death.AFTER),
            ("launcher", "ec2:RunInstances", Death.AFTER),
            ("artifact_check", "s3:PutObject", "given up"),
            ("terminator", "ec2:TerminateInstances", "given up"),
        ),
        breaks=True,
    ),
    Start(meets=(("launcher", "ec2:CreateTags", "given up"), ("terminator", "dynamodb:PutItem", Kind.LOST)), free=3),
    Start(losses=ADMISSION.limits.recoveries + 1),
    Start(losses=1, fails=True),
    Start(losses=2, cap=2.6),
    Start(stall=Reaction.RESTART, cap=2.6),
    Start(stall=Reaction.STOP),
    Start(redriven_s=20.0),
    Start(redriven_s=3000.0, cap=2.6),
)


class Jobs(RuleBasedStateMachine):
    """Two or three executions, begun within minutes of each other."""

    start: ClassVar[Start]

    @initialize(seed=st.integers(0, 2**32), first=REQUEST, second=REQUEST, apart=st.sampled_from([0, 0, 1, 40]))
    def two_begin(self, seed: int, first: dict[str, object], second: dict[str, object], apart: int) -> None:
        self.begin(seed, first, second, apart)

    def begin(self, seed: int, first: dict[str, object], second: dict[str, object], apart: int) -> None:
        self.world = JobsWorld(seed)
        if self.start.free is not None:
            for ec2 in self.world.aws.ec2.values():
                ec2.capacity = {(kind, zone): self.start.free for kind in KINDS for zone in ec2.catalogue.zones}
        asked: dict[str, object] = {"retries": RETRIES} if self.start.fails else {}
        asked |= {"max_cost_usd": self.start.cap} if self.start.cap else {}
        asked |= {"stall": {"minutes": 5.0, "then": self.start.stall.value}} if self.start.stall else {}
        self._begin(NAMES[0], first | asked)
        self.world.run(apart)
        self._begin(NAMES[1], second)
        if self.start.breaks:
            self.world.run(200)
            for which in (0, 1):
                self.a_node_breaks(which)
            self.world.run(20)
        for number in range(1, self.start.losses + 1):
            self._until_it_trains(number)
            self.a_checkpoint_is_closed(0, 10 * number)
            self.a_node_breaks(0)
        if self.start.fails:
            self._until_it_trains(self.start.losses + 1)
            self.a_node_fails(0, RETRIED_CODE)
        if self.start.stall:
            self._until_it_trains(1)
            self.a_training_stands_still(0)
        if self.start.redriven_s is not None:
            self._until_it_trains(1)
            self.world.stop(self.one(0))
            self.world.run(self.start.redriven_s)
            self.a_person_has_one_go_on(0)

    def _until_it_trains(self, attempt: int) -> None:
        execution = self.one(0).execution
        for _ in range(60):
            if (execution.state, execution.attempt) == ("Train", attempt) or execution.over:
                break
            self.world.run(20)
        self.world.run(100)  # its nodes boot

    def _begin(self, name: str, request: dict[str, object]) -> None:
        run = self.world.ask(name, **request)  # type: ignore[arg-type]
        for function, call, what in self.start.meets:
            run.armed[function] = self._mishap(run, call, 1, what)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            if not self.world.surprises:
                self._ends_well()
        finally:
            self.world.close()

    def one(self, which: int) -> Run:
        return self.world.runs[which % len(self.world.runs)]

    def nodes(self, which: int) -> list[Node]:
        return self.world.living(self.one(which))

    # Time, and what people do

    @rule(seconds=st.sampled_from([1, 5, 20, 61, 130, 310, 1300]))
    def time_passes(self, seconds: int) -> None:
        self.world.run(seconds)

    @rule(request=REQUEST)
    @precondition(lambda self: len(self.world.runs) == 2)
    def a_third_begins(self, request: dict[str, object]) -> None:
        self.world.ask(NAMES[2], **request)  # type: ignore[arg-type]

    @rule(which=WHICH, request=REQUEST)
    def a_name_that_was_used_comes_again(self, which: int, request: dict[str, object]) -> None:
        """As it may ninety days later: nothing of the execution before is on its way any more."""
        before = self.one(which)
        over_s = self.world.clock.now - before.execution.ended_at
        used = before.execution.launched and not before.refused
        if used and over_s > 600 and sum(run.id == before.id for run in self.world.runs) == 1:
            self.world.ask(before.id, **request)  # type: ignore[arg-type]

    @rule()
    @precondition(lambda self: len(self.world.runs) < 4)
    def somebody_asks_for_too_much(self) -> None:
        self.world.ask(f"greedy-{len(self.world.runs)}", nodes=99)

    @rule(which=WHICH)
    @precondition(lambda self: self.world.chance.random() < 0.3)
    def a_person_stops_one(self, which: int) -> None:
        self.world.stop(self.one(which))

    @rule(which=WHICH)
    def a_person_has_one_go_on(self, which: int) -> None:
        """By a redrive, while its cleanup runs or long after; the nodes of the attempt that was stopped are gone by then, or will be."""
        self.world.redrive(self.one(which))

    @rule(which=WHICH)
    def the_archive_is_replaced(self, which: int) -> None:
        self.world.upload(self.one(which).id)

    # Capacity

    @rule(
        zone=ZONE,
        kind=st.sampled_from(["g5.xlarge", "g5.xlarge", "g4dn.xlarge"]),
        free=st.sampled_from([0, 1, 2, 3]),
    )
    def capacity_becomes_scarce(self, zone: str, kind: str, free: int) -> None:
        self.world.aws.ec2[zone[:-1]].capacity[kind, zone] = free

    @rule(region=st.sampled_from(["eu-central-1", "eu-west-1"]), quota=st.sampled_from([4, 8, None]))
    @precondition(lambda self: self.world.chance.random() < 0.3)
    def the_quota_changes(self, region: str, quota: int | None) -> None:
        self.world.aws.ec2[region].vcpu_quota = quota

    @rule(zone=ZONE, kind=st.sampled_from(KINDS), share=st.sampled_from([0.2, 0.6, 1.0, 1.5]))
    def a_spot_price_moves(self, zone: str, kind: str, share: float) -> None:
        self.world.move_price(zone, kind, share)

    @rule()
    def capacity_comes_back(self) -> None:
        self.world.heal()

    # Calls and functions

    @rule(call=CALL, which=WHICH, nth=st.sampled_from([1, 1, 2, 3]), what=WHAT, then_s=st.sampled_from([0, 5, 20]))
    def a_call_will_meet(
        self, call: tuple[str, str], which: int, nth: int, what: Kind | Death | str, then_s: int
    ) -> None:
        (function, name), run = call, self.one(which)
        mishap = self._mishap(run, name, nth, what)
        if function == "attendant" and what != "given up":
            self.world.armed[function] = mishap
        else:
            run.armed[function] = mishap
        self.world.run(then_s)

    def _mishap(self, run: Run, name: str, nth: int, what: Kind | Death | str) -> Mishap:
        clock = self.world.clock

        def given_up() -> None:
            """The answer is lost, the machine goes on, and so does the function, a while later."""
            run.execution.give_up()
            clock.spend(100.0)

        match what:
            case Kind():
                return Mishap(name, nth, fault=what)
            case Death():
                return Mishap(name, nth, death=what)
            case "pause":
                return Mishap(name, nth, meanwhile=lambda: clock.spend(45.0))
        return Mishap(name, nth, meanwhile=given_up)

    # Nodes

    @rule(which=WHICH)
    def a_training_ends(self, which: int) -> None:
        for node in self.nodes(which):
            self.leave_by_itself(self.one(which), node)

    @rule(which=WHICH, torn=st.sampled_from(["missing", "short", "uncommitted"]))
    def a_training_ends_and_a_file_is_not_whole(self, which: int, torn: str) -> None:
        for place, node in enumerate(self.nodes(which)):
            self.world.leave(node, Exit(code=0), torn="" if place else torn)

    @rule(which=WHICH, code=st.sampled_from([1, RETRIED_CODE]))
    def a_node_fails(self, which: int, code: int) -> None:
        for node in self.nodes(which)[:1]:
            self.world.leave(node, Exit(code=code))

    @rule(which=WHICH, step=st.sampled_from([0, 10, 20, 30]))
    def a_checkpoint_is_closed(self, which: int, step: int) -> None:
        for node in self.nodes(which)[-1:]:
            self.world.close_set(node, step)

    @rule(which=WHICH)
    def a_node_breaks(self, which: int) -> None:
        for node in self.nodes(which)[-1:]:
            self.world.break_down(node)

    @rule(which=WHICH)
    def aws_takes_a_node_back(self, which: int) -> None:
        for node in self.nodes(which)[-1:]:
            self.world.take_back(node)

    @rule(which=WHICH)
    def a_node_falls_silent(self, which: int) -> None:
        for node in self.nodes(which)[-1:]:
            self.world.silence(node)

    @rule(which=WHICH)
    def a_training_stands_still(self, which: int) -> None:
        self.world.stand_still(self.one(which))

    @rule(which=WHICH)
    def a_training_goes_on(self, which: int) -> None:
        self.world.go_on(self.one(which))

    # What must hold

    @invariant()
    def each_keeps_to_its_own(self) -> None:
        if hasattr(self, "world"):
            assert self.world.surprises == [], repr(self.world.surprises)[:1500]
            assert self.world.too_many() == []
            assert self.world.together() == []

    def leave_by_itself(self, run: Run, node: Node) -> None:
        """Its command ends, as those of its role do: one that serves others never does."""
        end = run.ends[node.rank] if run.ends else RoleEnd.JOB
        if end is not RoleEnd.SERVED:
            self.world.leave(node, Exit(code=0 if end is RoleEnd.JOB else 3))

    def _ends_well(self) -> None:
        """With nothing more going wrong every execution ends, and a quarter of an hour later nothing is left of any. A training that
        stands still goes on, but where its request wants an end of that."""
        world = self.world
        world.heal()
        for run in world.going():
            if run.stall is None or run.stall.then is Reaction.NOTIFY:
                world.go_on(run)
        for _ in range(120):
            if not world.going():
                break
            for run in world.going():
                for node in world.living(run):
                    if run.execution.state == "Train":
                        self.leave_by_itself(run, node)
            world.run(61.0)
            self.each_keeps_to_its_own()
        assert [(run.id, run.execution.state) for run in world.going()] == []
        world.run(900.0)
        self.each_keeps_to_its_own()
        assert world.left_over() == []
        assert world.surprises == []
