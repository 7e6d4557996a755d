"""The launcher's walk on a store and an EC2 of memory: killed, raced, throttled, repeated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from botocore.exceptions import ClientError

from aws.facts import Instance
from contract import tags
from contract.errors import CapacityPending, CapacityUnavailable, InvalidRequest, NodeLost
from contract.health import UnhealthyNode
from contract.intents import Intent, LaunchOutcome
from contract.jobs import Market
from launcher.arguments import LaunchMarks, build_arguments
from tests.builders import JOB, NOW
from tests.functions.launcher.walking import Clock, FakeEc2, Store, walker


def test_the_first_rung_with_capacity_is_taken_and_its_master_named() -> None:
    store, ec2 = Store(), FakeEc2(["InsufficientInstanceCapacity"])
    intent, step = walker(store, ec2, Clock()).launch(JOB, 1)
    assert step.rung.zone == "eu-central-1b"
    assert step.answer is not None
    assert ec2.tagged == dict.fromkeys(step.answer.instances, "10.0.0.0")
    assert [one.answer.outcome if one.answer else None for one in intent.steps] == [
        LaunchOutcome.NO_CAPACITY,
        LaunchOutcome.LAUNCHED,
        None,
    ]


def test_the_answer_keeps_the_address_of_every_node_by_rank() -> None:
    store = Store()
    _, step = walker(store, FakeEc2(), Clock()).launch(JOB, 1)
    assert step.answer is not None
    assert step.answer.addresses == tuple(f"10.0.0.{rank}" for rank in range(JOB.nodes))
    assert step.answer.addresses[0] == step.answer.master_address
    again, _ = walker(store, FakeEc2(), Clock(), holder="two").launch(JOB, 1)
    assert again.launched is not None
    assert again.launched.answer == step.answer


def test_a_lost_answer_repeats_the_same_bytes_and_finds_the_same_instances() -> None:
    ec2 = FakeEc2(["lost", "InternalError", "ok"])
    walker(Store(), ec2, Clock()).launch(JOB, 1)
    assert len(set(ec2.calls)) == 1
    assert len(ec2.launches) == 1


def test_a_second_launch_of_the_same_attempt_launches_nothing() -> None:
    store, ec2, clock = Store(), FakeEc2(), Clock()
    first = walker(store, ec2, clock).launch(JOB, 1)[1]
    second = walker(store, ec2, clock, holder="two").launch(JOB, 1)[1]
    assert first == second
    assert len(ec2.calls) == 1


def test_a_function_killed_after_the_call_is_followed_by_one_that_finds_the_instances() -> None:
    store, ec2, clock = Store(), FakeEc2(["lost"]), Clock()
    first = walker(store, ec2, clock)

    def killed(_seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace(first, sleep=killed).launch(JOB, 1)
    clock.time += 301
    walker(store, ec2, clock, holder="two").launch(JOB, 1)
    assert len(ec2.launches) == 1


def test_two_invocations_never_walk_at_the_same_time() -> None:
    store, ec2, clock = Store(), FakeEc2(["lost"]), Clock()
    with pytest.raises(KeyboardInterrupt):
        replace(walker(store, ec2, clock), sleep=lambda _: (_ for _ in ()).throw(KeyboardInterrupt)).launch(JOB, 1)
    with pytest.raises(CapacityPending, match="another invocation may walk"):
        walker(store, ec2, clock, holder="two").launch(JOB, 1)
    assert len(ec2.calls) == 1


def test_instances_that_were_terminated_are_replaced_under_a_new_token() -> None:
    ec2 = FakeEc2(["IdempotentInstanceTerminated"])
    walker(Store(), ec2, Clock()).launch(JOB, 1)
    assert len({token for _, token in ec2.calls}) == 2
    assert len({zone for zone, _ in ec2.calls}) == 1


def test_a_cluster_that_is_partly_gone_is_not_replaced_beside_what_is_left() -> None:
    left = Instance(id="i-7", region="", state="running", rank=1, address="", launched_at=NOW, attempt=1)
    store, ec2, clock = Store(), FakeEc2(["IdempotentInstanceTerminated"] * 2, left=[left]), Clock()
    for holder in ("one", "two"):
        with pytest.raises(NodeLost, match="i-7 run without them"):
            walker(store, ec2, clock, holder=holder).launch(JOB, 1)
    assert ec2.launches == {}


@pytest.mark.parametrize("other", [{"attempt": 2}, {"attempt": 1, "state": "terminated"}])
def test_what_is_gone_or_of_another_attempt_keeps_no_cluster_from_being_replaced(other: dict[str, Any]) -> None:
    one = Instance(id="i-7", region="", state="running", rank=1, address="", launched_at=NOW)
    ec2 = FakeEc2(["IdempotentInstanceTerminated"], left=[replace(one, **other)])
    walker(Store(), ec2, Clock()).launch(JOB, 1)
    assert len(ec2.launches) == 1


def test_an_attempt_that_was_terminated_launches_nothing_and_holds_nobody_up() -> None:
    store, ec2 = Store(), FakeEc2()
    store.is_closed = True
    with pytest.raises(NodeLost, match="was terminated"):
        walker(store, ec2, Clock()).launch(JOB, 1)
    assert ec2.calls == []
    assert store.held[1].intent.held_until == 0.0


def test_no_capacity_anywhere_walks_again_and_gives_up_when_patience_is_over() -> None:
    store, clock = Store(), Clock()
    for walk in (1, 2):
        with pytest.raises(CapacityPending, match=f"walk {walk}"):
            walker(store, FakeEc2(["InsufficientInstanceCapacity"] * 3), clock).launch(JOB, 1)
        clock.time += 60
    clock.time = NOW + 1801
    with pytest.raises(
        CapacityUnavailable, match=r"g5.xlarge in eu-central-1a \(on-demand\): InsufficientInstanceCapacity"
    ):
        walker(store, FakeEc2(), clock).launch(JOB, 1)


def test_a_mistake_of_every_type_asks_each_type_once_and_is_never_repeated() -> None:
    store, ec2, clock = Store(), FakeEc2(["InvalidParameterValue", "UnauthorizedOperation"]), Clock()
    with pytest.raises(InvalidRequest, match="InvalidParameterValue: said EC2"):
        walker(store, ec2, clock).launch(JOB, 1)
    with pytest.raises(InvalidRequest):
        walker(store, ec2, clock).launch(JOB, 1)
    assert len(ec2.calls) == 2 < len(JOB.ladder)


def test_an_answer_that_nobody_has_seen_closes_its_type_and_the_next_one_launches() -> None:
    ec2 = FakeEc2(["SomethingNew"])
    _, step = walker(Store(), ec2, Clock()).launch(JOB, 1)
    assert step.rung.instance_type == "g4dn.xlarge"
    assert len(ec2.calls) == 2


@pytest.mark.parametrize("answer", ["ServerInternal", "ServerInternal 500", "SomethingNew 500", "SomethingNew 503"])
def test_an_error_of_ec2_itself_closes_no_type_because_it_may_have_launched(answer: str) -> None:
    ec2 = FakeEc2(["lost", answer, "ok"])
    walker(Store(), ec2, Clock()).launch(JOB, 1)
    assert len(set(ec2.calls)) == len(ec2.launches) == 1


def test_a_lack_of_capacity_is_one_although_ec2_calls_it_a_fault_of_its_own() -> None:
    _, step = walker(Store(), FakeEc2(["InsufficientInstanceCapacity 500"]), Clock()).launch(JOB, 1)
    assert step.rung.zone == "eu-central-1b"


def test_a_token_that_was_used_for_something_else_ends_the_walk_at_once() -> None:
    """What was launched with it may run: a launch of another type beside it would be a second cluster."""
    store, ec2, clock = Store(), FakeEc2(["IdempotentParameterMismatch"]), Clock()
    for _ in range(2):
        with pytest.raises(InvalidRequest, match="IdempotentParameterMismatch"):
            walker(store, ec2, clock).launch(JOB, 1)
    assert len(ec2.calls) == 1


def test_a_throttle_that_never_ends_ends_with_the_functions_time_and_goes_on_in_the_next() -> None:
    store, clock = Store(), Clock()
    with pytest.raises(CapacityPending, match="next invocation goes on"):
        walker(store, FakeEc2(["RequestLimitExceeded"] * 1000), clock).launch(JOB, 1)
    ec2 = FakeEc2()
    walker(store, ec2, clock, holder="two").launch(JOB, 1)
    assert len(store.held) == 1
    assert len(ec2.calls) == 1


@pytest.mark.parametrize("code", ["UnauthorizedOperation", "InvalidInstanceID.NotFound"])
def test_a_new_instance_that_ec2_or_iam_does_not_know_yet_is_named_seconds_later(code: str) -> None:
    ec2, clock = FakeEc2(tag_answers=[code] * 4), Clock()
    walker(Store(), ec2, clock).launch(JOB, 1)
    assert len(ec2.tagged) == JOB.nodes
    assert 0 < clock.time - NOW <= 30


@pytest.mark.parametrize(("code", "waited"), [("UnauthorizedOperation", 30), ("TagLimitExceeded", 0)])
def test_a_refusal_to_name_the_master_that_stays_is_raised_and_nothing_more_is_launched(code: str, waited: int) -> None:
    store, ec2, clock = Store(), FakeEc2(tag_answers=[code] * 1000), Clock()
    with pytest.raises(ClientError, match=code):
        walker(store, ec2, clock).launch(JOB, 1)
    assert clock.time - NOW == pytest.approx(waited, abs=3)
    ec2.tag_answers.clear()
    walker(store, ec2, clock, holder="two").launch(JOB, 1)
    assert (len(ec2.calls), len(ec2.tagged)) == (1, JOB.nodes)


def test_naming_the_master_stops_ahead_of_the_functions_end_and_the_next_invocation_goes_on() -> None:
    store, ec2, clock = Store(), FakeEc2(tag_answers=["UnauthorizedOperation"] * 1000), Clock()
    with pytest.raises(CapacityPending, match="the next invocation names their master"):
        walker(store, ec2, clock, left=25.0).launch(JOB, 1)
    ec2.tag_answers.clear()
    walker(store, ec2, clock, holder="two").launch(JOB, 1)
    assert (len(ec2.calls), len(ec2.tagged)) == (1, JOB.nodes)


def test_a_region_is_noted_once_a_walk_before_the_first_call_there() -> None:
    store, ec2 = Store(), FakeEc2(["InsufficientInstanceCapacity", "InsufficientInstanceCapacity"])
    walker(store, ec2, Clock()).launch(JOB, 1)
    assert store.noted == ["eu-central-1"]


def test_a_region_that_cannot_be_noted_gets_no_launch() -> None:
    """The reaper would not look there."""
    store, ec2 = Store(), FakeEc2()
    refused = ClientError({"Error": {"Code": "AccessDenied"}}, "PutItem")
    with mock.patch.object(store, "note_region", side_effect=refused), pytest.raises(ClientError):
        walker(store, ec2, Clock()).launch(JOB, 1)
    assert ec2.calls == []


def test_each_node_has_its_rank_in_its_name() -> None:
    ec2 = FakeEc2()
    _, step = walker(Store(), ec2, Clock()).launch(JOB, 3)
    assert step.answer is not None
    assert [ec2.names[one] for one in step.answer.instances] == ["job-1/3/0", "job-1/3/1"]


def test_the_only_node_of_a_job_has_its_name_from_the_launch() -> None:
    ec2, job = FakeEc2(), replace(JOB, nodes=1)
    _, step = walker(Store(), ec2, Clock()).launch(job, 1)
    marks = next(one["Tags"] for one in step.request["TagSpecifications"] if one["ResourceType"] == "instance")
    assert {"Key": tags.NAME, "Value": "job-1/1/0"} in marks
    assert ec2.names == {}


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "UnauthorizedOperation", "InvalidInstanceID.NotFound"])
def test_names_that_cannot_be_given_keep_no_job_from_training(code: str) -> None:
    ec2 = FakeEc2(without_names=code)
    _, step = walker(Store(), ec2, Clock()).launch(JOB, 1)
    assert step.answer is not None
    assert set(ec2.tagged) == set(step.answer.instances)


def test_a_function_whose_time_is_nearly_over_names_no_nodes() -> None:
    ec2, clock = FakeEc2(), Clock()
    left = iter([300.0] * 3)
    slow = replace(walker(Store(), ec2, clock), left=lambda: next(left, 1.0))
    slow.launch(JOB, 1)
    assert ec2.names == {}


def test_a_walk_that_launched_already_notes_nothing_more() -> None:
    store, ec2, clock = Store(), FakeEc2(), Clock()
    walker(store, ec2, clock).launch(JOB, 1)
    store.noted.clear()
    walker(store, ec2, clock, holder="two").launch(JOB, 1)
    assert store.noted == []


@pytest.mark.parametrize("market", list(Market))
def test_a_spot_request_carries_the_tags_of_its_instances(market: Market) -> None:
    made = build_arguments(
        JOB,
        1,
        replace(JOB.ladder[0], market=market),
        group="",
        security_group="sg-1",
        marks=LaunchMarks(profile="arn:p"),
    )
    marks = {one["ResourceType"]: one["Tags"] for one in made["TagSpecifications"]}
    assert ("spot-instances-request" in marks) == (market is Market.SPOT)
    assert all(tags == marks["instance"] for tags in marks.values())


def bad(attempt: int, zone: str = "eu-central-1a", region: str = "eu-central-1") -> UnhealthyNode:
    told = {"rank": 1, "instance": "i-1", "region": region, "zone": zone, "instance_type": "g5.xlarge", "why": "Xid 79"}
    return UnhealthyNode(attempt=attempt, **told)  # type: ignore[arg-type]


def places(intent: Intent) -> list[tuple[str, str]]:
    return [(step.rung.zone[-1], step.rung.instance_type) for step in intent.steps]


def launched(attempt: int, *known: UnhealthyNode) -> Intent:
    store = Store()
    store.bad = list(known)
    return walker(store, FakeEc2(), Clock()).launch(JOB, attempt)[0]


IN_ORDER = [(rung.zone[-1], rung.instance_type) for rung in JOB.ladder]
"""Of the ladder: a and b of the first type, then a of the second."""


def test_the_zone_of_an_unhealthy_node_is_tried_last_with_all_its_types_in_their_order() -> None:
    assert places(launched(2, bad(1))) == [("b", "g5.xlarge"), ("a", "g5.xlarge"), ("a", "g4dn.xlarge")]


def test_a_zone_is_tried_last_in_every_later_attempt_and_never_left_out() -> None:
    both = places(launched(3, bad(1), bad(2, "eu-central-1b")))
    assert both == IN_ORDER
    assert places(launched(4, bad(1)))[0] == ("b", "g5.xlarge")


@pytest.mark.parametrize("known", [bad(2), bad(3), bad(1, region="us-east-1"), bad(1, "eu-central-1c")])
def test_what_later_attempts_and_other_places_had_changes_no_order(known: UnhealthyNode) -> None:
    assert places(launched(2, known)) == IN_ORDER


def test_a_walk_that_goes_on_keeps_its_order_whatever_is_noted_meanwhile() -> None:
    store, ec2, clock = Store(), FakeEc2(["lost"]), Clock()
    with pytest.raises(KeyboardInterrupt):
        replace(walker(store, ec2, clock), sleep=lambda _: (_ for _ in ()).throw(KeyboardInterrupt)).launch(JOB, 2)
    store.bad = [bad(1)]
    clock.time += 301
    intent, step = walker(store, ec2, clock, holder="two").launch(JOB, 2)
    assert (places(intent), step.rung) == (IN_ORDER, JOB.ladder[0])
