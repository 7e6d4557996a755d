"""The launch of a job with roles: a request for each shape, in one zone, and what becomes of a launch of which only a half came."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from aws.state import Held
from contract import money, tags
from contract.codec import decode, encode
from contract.empty_places import EmptyPlace
from contract.errors import (
    CapacityAwaited,
    CapacityPending,
    CapacityUnavailable,
    InvalidRequest,
    JobError,
    LaunchIncomplete,
    QuotaExceeded,
)
from contract.intents import Intent, LaunchAnswer, LaunchOutcome, Step
from contract.jobs import Job, Market
from contract.shapes import find_rung, list_types
from ending.policy import explain_pending, recorded_ids
from launcher import empty_places, halves, policy, prices, waits
from launcher.arguments import LaunchMarks, build_arguments, token
from launcher.waiter import Waiter
from tests.builders import INTENT, JOB, NOW, WITH_ROLES, rung, shaped
from tests.functions.launcher.walking import Clock, FakeEc2, Store, walker

EMPTY = "InsufficientInstanceCapacity"
MARKS = LaunchMarks(profile="arn:p")
HERE = shaped("eu-central-1a")
"""The first rung of WITH_ROLES: three g5.xlarge, then two m5.large."""


class Attempts(Store):
    """A store that keeps the walks of attempts apart."""

    def intents(self, _job: str, attempt: int) -> list[Held]:
        return [one for one in super().intents(_job, attempt) if one.intent.attempt == attempt]

    def create_intent(self, job: Job, intent: Intent) -> Held:
        number = len(self.held)
        return super().create_intent(job, replace(intent, walk=number + 1))


def launched(ec2: FakeEc2, store: Store | None = None, attempt: int = 1, clock: Clock | None = None) -> Step:
    return walker(store or Store(), ec2, clock or Clock()).launch(WITH_ROLES, attempt)[1]


def sent(step: Step) -> list[dict[str, str]]:
    """The tags of the nodes, by request."""
    kinds = [
        next(one for one in each["TagSpecifications"] if one["ResourceType"] == "instance") for each in step.requests
    ]
    return [{one["Key"]: one["Value"] for one in kind["Tags"]} for kind in kinds]


def half(code: str = EMPTY, store: Store | None = None) -> Step:
    """The step of a launch whose second shape got that answer."""
    store = store or Store()
    with pytest.raises(LaunchIncomplete):
        launched(FakeEc2(["ok", code]), store)
    step = [*store.held.values()][-1].intent.half
    assert step is not None
    return step


def test_each_shape_is_one_request_in_the_same_zone_and_group() -> None:
    step = launched(FakeEc2())
    assert [(one["MinCount"], one["MaxCount"], one["InstanceType"]) for one in step.requests] == [
        (3, 3, "g5.xlarge"),
        (2, 2, "m5.large"),
    ]
    assert len({str(one["Placement"]) for one in step.requests}) == 1
    assert "GroupName" in step.request["Placement"]


def test_the_launch_itself_says_the_first_rank_and_the_role() -> None:
    tagged = sent(launched(FakeEc2()))
    assert [(one[tags.FIRST_RANK], one[tags.ROLE], one[tags.NODES]) for one in tagged] == [
        ("0", "chief+worker", "5"),
        ("3", "ps+evaluator", "5"),
    ]


def test_a_job_without_roles_is_launched_with_the_bytes_that_it_was_before() -> None:
    ec2 = FakeEc2()
    _, step = walker(Store(), ec2, Clock()).launch(JOB, 1)
    assert step.further == ()
    assert tags.FIRST_RANK not in sent(step)[0]
    assert sent(step)[0][tags.ROLE] == "worker"
    written = encode(replace(INTENT, steps=(step,)))
    assert all(f'"{name}"'.encode() not in written for name in ("further", "shape", "shapes"))


def test_the_tokens_of_two_shapes_differ_and_are_the_same_in_every_try() -> None:
    step = launched(FakeEc2())
    found = [token(step, "script", shape) for shape in (0, 1)]
    assert len({*found}) == 2
    assert found == [token(decode(Step, encode(step)), "script", shape) for shape in (0, 1)]


def test_nodes_are_kept_in_the_order_of_ranks_whatever_was_asked_first() -> None:
    job = replace(WITH_ROLES, ladder=(replace(HERE, shapes=HERE.shapes[::-1]),))
    ec2 = FakeEc2()
    step = walker(Store(), ec2, Clock()).launch(job, 1)[1]
    assert [one["InstanceType"] for one in step.requests] == ["m5.large", "g5.xlarge"]
    assert step.answer is not None
    first, second = ([one.id for one in some] for some in ec2.launches.values())
    assert list(step.answer.instances) == [*second, *first]
    assert ec2.tagged == dict.fromkeys(step.answer.instances, step.answer.master_address)
    assert [ec2.names[one] for one in step.answer.instances] == [f"job-1/1/{rank}" for rank in range(5)]


def test_a_first_shape_without_capacity_leaves_nothing_and_the_next_zone_is_asked() -> None:
    ec2 = FakeEc2([EMPTY])
    step = launched(ec2)
    assert [zone for zone, _ in ec2.calls] == ["eu-central-1a", "eu-central-1b", "eu-central-1b"]
    assert step.rung.zone == "eu-central-1b"


def test_a_later_shape_without_capacity_ends_the_walk_and_asks_no_other_zone() -> None:
    ec2, store = FakeEc2(["ok", EMPTY]), Store()
    with pytest.raises(
        LaunchIncomplete,
        match=r"3 nodes were launched in eu-central-1a, .* those of ps and evaluator on m5\.large: InsufficientInst",
    ):
        launched(ec2, store)
    assert len(ec2.calls) == 2
    assert ec2.tagged == {}


@pytest.mark.parametrize("code", ["VcpuLimitExceeded", "OptInRequired", "InvalidParameterCombination", EMPTY])
def test_whatever_keeps_a_later_shape_away_the_half_is_written_down_with_its_nodes(code: str) -> None:
    step = half(code)
    assert step.answer is not None
    assert step.answer.is_half
    assert (step.answer.shape, len(step.answer.instances)) == (1, 3)
    walk = replace(INTENT, steps=(step,))
    assert len(recorded_ids([walk])) == 3
    assert explain_pending([walk], shown=[], now=NOW + 1, visibility_s=5.0) != []
    assert decode(Intent, encode(walk)).half == step


def test_the_same_attempt_asked_again_launches_nothing_more() -> None:
    ec2, store = FakeEc2(["ok", EMPTY]), Store()
    for holder in ("one", "two"):
        with pytest.raises(LaunchIncomplete):
            walker(store, ec2, Clock(), holder=holder).launch(WITH_ROLES, 1)
    assert len(ec2.calls) == 2


def test_a_lost_answer_to_a_later_shape_is_asked_again_and_finds_both() -> None:
    ec2 = FakeEc2(["ok", "lost"])
    step = launched(ec2)
    assert len(ec2.launches) == 2
    assert [token for _, token in ec2.calls] == [
        *(token for _, token in ec2.calls[:2]),
        *(token for _, token in ec2.calls[:2]),
    ]
    assert step.answer is not None
    assert len(step.answer.instances) == 5


def test_a_launcher_that_dies_between_two_shapes_is_followed_by_one_that_finds_the_first() -> None:
    store, ec2, clock = Store(), FakeEc2(["ok", "lost"]), Clock()

    def killed(_seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace(walker(store, ec2, clock), sleep=killed).launch(WITH_ROLES, 1)
    clock.time += 301
    walker(store, ec2, clock, holder="two").launch(WITH_ROLES, 1)
    assert len(ec2.launches) == 2


def test_a_later_shape_of_which_nothing_is_ever_learnt_is_a_half_and_no_other_zone_is_asked() -> None:
    ec2, store, clock = FakeEc2(["ok", *["InternalError"] * 0]), Store(), Clock()
    ec2.answers = [one for _ in range(2000) for one in ("ok", "InternalError")]
    walk = walker(store, ec2, clock, left=100_000.0)
    with pytest.raises(LaunchIncomplete):
        walk.launch(WITH_ROLES, 1)
    assert {zone for zone, _ in ec2.calls} == {"eu-central-1a"}
    (held,) = store.held.values()
    step = held.intent.half
    assert step is not None
    assert step.answer is not None
    assert step.answer.doubted


def test_no_time_for_the_second_shape_leaves_it_to_the_next_invocation() -> None:
    store, ec2, clock = Store(), FakeEc2(), Clock()

    def slow(request: Any, *, user_data: str, token: str) -> Any:
        clock.time += 290
        return FakeEc2.run(ec2, request, user_data=user_data, token=token)

    hurried: Any = ec2
    hurried.run = slow
    with pytest.raises(CapacityPending, match="time is nearly over"):
        walker(store, ec2, clock).launch(WITH_ROLES, 1)
    assert len(ec2.launches) == 1
    del hurried.run
    walker(store, ec2, clock, holder="two").launch(WITH_ROLES, 1)
    assert len(ec2.launches) == 2


# The attempt after a half


def test_the_next_attempt_passes_over_the_place_and_takes_another() -> None:
    store, clock = Attempts(), Clock()
    half(store=store)
    ec2 = FakeEc2()
    step = launched(ec2, store, 2, clock)
    assert {zone for zone, _ in ec2.calls} == {"eu-central-1b"}
    assert step.rung.zone == "eu-central-1b"


def test_where_it_was_the_only_place_it_is_asked_again_in_the_second_walk() -> None:
    store, clock, job = Attempts(), Clock(), replace(WITH_ROLES, ladder=(HERE,))
    with pytest.raises(LaunchIncomplete):
        walker(store, FakeEc2(["ok", EMPTY]), clock).launch(job, 1)
    ec2 = FakeEc2()
    with pytest.raises(CapacityPending, match="in attempt 1"):
        walker(store, ec2, clock).launch(job, 2)
    assert ec2.calls == []
    walker(store, ec2, clock).launch(job, 2)
    assert len(ec2.calls) == 2


def end_of(job: Job, store: Store, clock: Clock, attempt: int) -> JobError:
    """With what an attempt ends while there is capacity for the first shape alone."""
    while True:
        try:
            walker(store, FakeEc2(["ok", EMPTY]), clock).launch(job, attempt)
        except CapacityPending:
            clock.time += job.timing.launch_again_s
        except JobError as problem:
            return problem


def test_the_patience_goes_on_over_attempts_that_never_began() -> None:
    store, clock, job = Attempts(), Clock(), replace(WITH_ROLES, ladder=(HERE,))
    began, attempt = clock.time, 1
    while attempt < 40 and isinstance(end_of(job, store, clock, attempt), LaunchIncomplete):
        clock.time += 30  # until Terminate has ended the half
        attempt += 1
    assert isinstance(end_of(job, store, clock, attempt), CapacityUnavailable)
    assert attempt > 5
    assert clock.time - began < job.timing.launch_patience_s + 5 * 60


def answered(outcome: LaunchOutcome, code: str, *, refused: bool = False, doubted: bool = True) -> Intent:
    answer = LaunchAnswer(
        outcome=outcome, at=NOW, code=code, instances=("i-0", "i-1", "i-2"), shape=1, refused=refused, doubted=doubted
    )
    return replace(INTENT, steps=(Step(rung=HERE, request={"a": 1}, further=({},), answer=answer),))


def test_what_closes_a_type_or_a_quota_closes_every_place_of_it_for_the_next_attempt() -> None:
    job = replace(WITH_ROLES, ladder=(*WITH_ROLES.ladder, shaped("eu-central-1a", "p4d.24xlarge")))
    quota = halves.pass_over_half(job, answered(LaunchOutcome.QUOTA, "VcpuLimitExceeded"))
    assert [one.zone for one in quota] == ["eu-central-1a", "eu-central-1b", "eu-central-1c"]  # a P has its own
    refused = halves.pass_over_half(job, answered(LaunchOutcome.NO_CAPACITY, "NeverSeen", refused=True))
    assert quota.keys() == refused.keys()
    empty = halves.pass_over_half(job, answered(LaunchOutcome.NO_CAPACITY, EMPTY))
    assert [*empty] == [HERE]
    assert {one.is_half for each in (quota, refused, empty) for one in each.values()} == {False}
    assert {one.doubted for each in (quota, refused, empty) for one in each.values()} == {False}


def test_a_quota_that_closes_all_places_ends_the_job_instead_of_launching_halves_for_ever() -> None:
    store, clock = Attempts(), Clock()
    half("VcpuLimitExceeded", store)
    with pytest.raises(QuotaExceeded):
        launched(FakeEc2(), store, 2, clock)


def test_a_type_that_is_refused_everywhere_ends_the_job_too() -> None:
    store, clock = Attempts(), Clock()
    half("InvalidParameterCombination", store)
    with pytest.raises(InvalidRequest, match="EC2 refuses the launch"):
        launched(FakeEc2(), store, 2, clock)


def test_a_job_that_waited_for_capacity_soon_waits_again() -> None:
    waiting = replace(answered(LaunchOutcome.NO_CAPACITY, EMPTY), waiting=True, patience_until=NOW + 1e6)
    assert halves.begin_patience(WITH_ROLES, waiting, NOW) == NOW + WITH_ROLES.timing.launch_again_s
    assert halves.begin_patience(WITH_ROLES, None, NOW) == NOW + WITH_ROLES.timing.launch_patience_s


@pytest.mark.parametrize(("answers", "kept"), [(["ok", EMPTY], 1), ([EMPTY] * 3, 0)])
def test_a_job_that_waits_keeps_its_security_group_while_its_half_runs(answers: list[str], kept: int) -> None:
    """Another job that took the group would reach the nodes of the half, until Terminate has ended them."""
    store, clock = Attempts(), Clock()
    patient = Waiter(until=clock.time + 1e5, before_call=lambda _region, _nodes: None, silent=set())
    with pytest.raises(LaunchIncomplete if kept else CapacityPending):
        replace(walker(store, FakeEc2(answers), clock), waiter=patient).launch(WITH_ROLES, 1)
    assert len(store.taken) == kept


def halves_of_a_day(job: Job, hours: float) -> list[float]:
    """When halves were launched while a job waits and there is capacity for the first shape alone, in hours."""
    store, clock, attempt, found = Attempts(), Clock(), 1, list[float]()
    began = clock.time
    while clock.time - began < hours * 3600:
        problem = end_of(job, store, clock, attempt)
        if isinstance(problem, CapacityUnavailable):
            walks = [one.intent for one in store.intents("job-1", attempt)]
            if not isinstance(waits.after_patience(job, walks, problem, now=clock.time), CapacityAwaited):
                break
            before = halves.list_halves(job, attempt, lambda one: [held.intent for held in store.intents("job-1", one)])
            wait = waits.begin_wait(job, attempt, "t", walks, halves=len(before), now=clock.time, chance=0.5)
            if wait.next_try_at >= wait.until:
                break
            clock.time = wait.next_try_at
            patient = Waiter(until=wait.until, before_call=lambda _region, _nodes: None, silent=set())
            with pytest.raises(LaunchIncomplete):
                replace(walker(store, FakeEc2(["ok", EMPTY]), clock), waiter=patient).launch(job, attempt)
        found.append((clock.time - began) / 3600)
        clock.time += 60.0  # until Terminate has ended the half
        attempt += 1
    return found


def test_a_job_that_waits_launches_halves_ever_less_often() -> None:
    job = replace(WITH_ROLES, ladder=(HERE,), max_wait_hours=72.0)
    found = halves_of_a_day(job, 6.0)
    assert found[-1] - found[-2] > job.timing.wait_longest_s / 3600
    assert len([one for one in found if one > 1.0]) <= 5 * 4


def test_the_hours_of_a_wait_go_on_over_halves() -> None:
    found = halves_of_a_day(replace(WITH_ROLES, ladder=(HERE,), max_wait_hours=3.0), 12.0)
    assert 2.5 < found[-1] < 4.0


@pytest.mark.parametrize(
    ("is_waiting", "is_half", "waited_s"), [(True, True, 400.0), (False, True, 100.0), (True, False, 100.0)]
)
def test_what_passes_until_a_half_is_ended_counts_for_a_job_that_waits(
    *, is_waiting: bool, is_half: bool, waited_s: float
) -> None:
    walk = replace(answered(LaunchOutcome.NO_CAPACITY, EMPTY), waiting=is_waiting, waited_s=100.0, started_at=NOW)
    walk = walk if is_half else replace(walk, steps=())
    assert halves.count_waited_s(walk, NOW + 300.0) == waited_s


def test_places_of_all_halves_in_a_row_are_passed_over_at_first() -> None:
    """Two places that each have capacity for one of two shapes would have one half after another, without a pause."""
    store, clock = Attempts(), Clock()
    job = replace(WITH_ROLES, ladder=WITH_ROLES.ladder[:2])
    for attempt in (1, 2):
        with pytest.raises(LaunchIncomplete):
            walker(store, FakeEc2(["ok", EMPTY]), clock).launch(job, attempt)
    ec2 = FakeEc2()
    with pytest.raises(CapacityPending):
        walker(store, ec2, clock).launch(job, 3)
    assert ec2.calls == []


def test_an_attempt_that_was_whole_ends_the_row_of_halves() -> None:
    store, clock = Attempts(), Clock()
    half(store=store)
    launched(FakeEc2(), store, 2, clock)
    read: Any = lambda one: [held.intent for held in store.intents("job-1", one)]  # noqa: E731
    assert [halves.list_halves(WITH_ROLES, attempt, read) != [] for attempt in (1, 2, 3)] == [False, True, False]
    assert halves.list_halves(JOB, 2, read) == []


# What others read of it


MIXED = replace(
    HERE, shapes=(HERE.shapes[0], replace(HERE.shapes[1], rung=replace(HERE.shapes[1].rung, market=Market.SPOT)))
)


@pytest.mark.parametrize(
    ("changed", "missing"),
    [
        ({"shape": 1}, "m5.large"),
        ({"shape": 1, "outcome": LaunchOutcome.QUOTA}, "m5.large"),
        ({"instances": ()}, "g5.xlarge"),
        ({"instances": (), "code": f"NotAsked: {EMPTY} in attempt 1"}, None),
        ({"instances": (), "outcome": LaunchOutcome.QUOTA}, None),
        ({"instances": (), "refused": True}, None),
        ({"outcome": LaunchOutcome.LAUNCHED}, None),
    ],
)
def test_an_answer_names_the_type_that_was_missing_and_none_where_it_is_about_all(
    changed: dict[str, Any], missing: str | None
) -> None:
    answer = LaunchAnswer(outcome=LaunchOutcome.NO_CAPACITY, at=NOW, code=EMPTY, instances=("i-0", "i-1", "i-2"))
    walk = replace(INTENT, steps=(Step(rung=HERE, request={"a": 1}, answer=replace(answer, **changed)),))
    assert policy.list_rungs(walk)[0].get("missing") == missing
    assert (" for " in policy.describe_rungs(walk)) is (missing is not None)
    assert f" for {missing}" in policy.describe_rungs(walk) or missing is None


def test_a_rung_of_two_markets_names_both() -> None:
    answer = LaunchAnswer(outcome=LaunchOutcome.QUOTA, at=NOW, code="VcpuLimitExceeded")
    walk = replace(INTENT, steps=(Step(rung=MIXED, request={"a": 1}, answer=answer),))
    assert policy.list_rungs(walk)[0]["market"] == "on-demand + spot"
    assert "(on-demand + spot)" in policy.describe_rungs(walk)


def test_a_place_with_fewer_nodes_of_the_missing_type_is_asked_by_the_next_attempt() -> None:
    """EC2 had none for two nodes; it may have one."""
    one = replace(HERE, shapes=(replace(HERE.shapes[0], nodes=4), replace(HERE.shapes[1], first_rank=4, nodes=1)))
    job = replace(WITH_ROLES, ladder=(HERE, one))
    assert [*halves.pass_over_half(job, answered(LaunchOutcome.NO_CAPACITY, EMPTY))] == [HERE]


def test_a_half_counts_as_launched_for_the_money() -> None:
    dear = replace(HERE, most_usd=2.0)
    walk = answered(LaunchOutcome.NO_CAPACITY, EMPTY, doubted=False)
    walk = replace(walk, steps=(replace(walk.steps[0], rung=dear),))
    assert money.spent_usd(WITH_ROLES, [walk], {1: NOW + 3600}, now=NOW + 7200) == pytest.approx(5 * 2.0)


def test_other_jobs_hear_which_type_was_missing_and_for_how_many_nodes() -> None:
    (step,) = answered(LaunchOutcome.NO_CAPACITY, EMPTY).steps
    note = empty_places.describe_empty(WITH_ROLES, step)
    assert note == EmptyPlace(
        region="eu-central-1", zone="eu-central-1a", instance_type="m5.large", market="on-demand", nodes=2, job="job-1", at=NOW
    )  # fmt: skip


def test_a_place_that_lacks_one_shape_is_passed_over_as_a_whole() -> None:
    note = EmptyPlace(
        region="eu-central-1", zone="eu-central-1b", instance_type="m5.large", market="on-demand", nodes=1, job="job-2", at=NOW
    )  # fmt: skip
    passed = empty_places.pass_over(WITH_ROLES, [note], None, waiting=True, now=NOW + 1)
    assert [one.zone for one in passed] == ["eu-central-1b"]
    more = replace(note, nodes=4)
    assert empty_places.pass_over(WITH_ROLES, [more], None, waiting=True, now=NOW + 1) == {}


def test_the_ladder_of_a_job_with_roles_keeps_its_order_while_it_waits() -> None:
    late = NOW + 10 * WITH_ROLES.timing.spot_prices_s
    assert prices.list_wanted(WITH_ROLES, {}, now=late) == {}
    assert prices.order_ladder(WITH_ROLES, {}) == WITH_ROLES.ladder


def test_the_answer_of_a_quota_closes_other_places_by_every_shape() -> None:
    other = replace(rung("eu-central-1b"), instance_type="x", shapes=shaped("eu-central-1b", "m6i.xlarge").shapes)
    steps = tuple(Step(rung=one, request={"a": 1}) for one in (HERE, other))
    answer = LaunchAnswer(outcome=LaunchOutcome.QUOTA, at=NOW, code="VcpuLimitExceeded")
    closed = policy.record_answer(replace(INTENT, steps=steps), 0, answer, recovering=False)
    assert closed.next_place is None  # the first shapes are of the same quota


def test_each_rank_has_its_own_type() -> None:
    assert [find_rung(WITH_ROLES, HERE, rank).instance_type for rank in range(5)] == ["g5.xlarge"] * 3 + [
        "m5.large"
    ] * 2
    assert list_types(WITH_ROLES) == ("g5.xlarge", "m5.large")
    assert find_rung(JOB, JOB.ladder[0], 1) is JOB.ladder[0]


def test_arguments_of_a_shape_are_those_of_its_type_alone() -> None:
    made = build_arguments(
        WITH_ROLES, 1, HERE.shapes[1].rung, group="", security_group="sg-1", marks=MARKS, shape=HERE.shapes[1]
    )
    whole = build_arguments(replace(JOB, nodes=2), 1, HERE.shapes[1].rung, group="", security_group="sg-1", marks=MARKS)
    assert made.keys() == whole.keys()
    assert {name for name in made if made[name] != whole[name]} == {"TagSpecifications"}
