"""How the ladder is walked, and what each answer of EC2 means for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import replace

import pytest

from aws.facts import Instance
from contract import tags
from contract.errors import CapacityPending, CapacityUnavailable, QuotaExceeded
from contract.intents import Intent, LaunchAnswer, LaunchOutcome, Step
from contract.jobs import Job, Market
from launcher import arguments, policy
from launcher.arguments import LaunchMarks, build_arguments, build_user_data, token
from tests.builders import INTENT, JOB, LAUNCHED, NOW, TAGS_AT_LAUNCH, rung

WALK = policy.Walk(
    number=1,
    started_at=NOW,
    patience_until=NOW + 1800,
    holder="me",
    held_until=NOW + 300,
    marks=LaunchMarks(profile="arn:p"),
    user_data="#!/bin/bash\n",
)


def planned(job: Job, attempt: int = 1, busy: Collection[str] = (), shared_with: tuple[str, ...] = ()) -> Intent:
    groups = policy.Groups(busy=frozenset(busy), security_group="sg-2", shared_with=shared_with)
    return policy.prepare_region(
        job, policy.plan(job, attempt, WALK, passed_over={}), "eu-central-1", groups, marks=WALK.marks
    )


def answer(outcome: LaunchOutcome, code: str = "") -> LaunchAnswer:
    return LaunchAnswer(outcome=outcome, at=NOW, code=code)


def record_answer(intent: Intent, place: int, outcome: LaunchOutcome, *, recovering: bool = False) -> Intent:
    return policy.record_answer(intent, place, answer(outcome), recovering=recovering)


def everywhere(outcome: LaunchOutcome) -> Intent:
    return replace(INTENT, steps=tuple(replace(step, answer=answer(outcome, outcome.value)) for step in INTENT.steps))


def test_every_volume_of_a_launch_is_encrypted_also_those_that_the_image_adds() -> None:
    image = replace(rung().image, further_devices=("/dev/sdf", "/dev/sdg"))
    asked = build_arguments(
        JOB, 1, replace(rung(), image=image), group="", security_group="sg-1", marks=LaunchMarks(profile="arn:p")
    )
    devices = {one["DeviceName"]: one["Ebs"] for one in asked["BlockDeviceMappings"]}
    assert list(devices) == [image.root_device, "/dev/sdf", "/dev/sdg"]
    assert all(ebs["Encrypted"] and ebs["DeleteOnTermination"] for ebs in devices.values())


def test_a_place_that_is_given_up_in_doubt_takes_of_the_money_of_those_that_were_not_asked() -> None:
    places = [replace(rung(zone), most_usd=2.0) for zone in ("eu-central-1a", "eu-central-1b", "eu-central-1c")]
    job = replace(JOB, ladder=tuple(places), max_cost_usd=12.0)
    walk = record_answer(planned(job), 0, LaunchOutcome.NO_CAPACITY)
    left = policy.give_up(job, walk, 1, answer(LaunchOutcome.UNKNOWN, "ReadTimeoutError"))
    assert left.doubted_usd == 4.0
    assert left.steps[0] == walk.steps[0]
    assert left.steps[1].answer == LaunchAnswer(
        outcome=LaunchOutcome.NO_CAPACITY, at=NOW, code="ReadTimeoutError", doubted=True
    )
    assert (left.steps[2].request, left.steps[2].answer) == ({}, None)


def test_a_place_that_the_money_does_not_pay_for_beside_what_is_in_doubt_is_not_asked() -> None:
    places = [replace(rung(zone), most_usd=2.0) for zone in ("eu-central-1a", "eu-central-1b")]
    job = replace(JOB, ladder=tuple(places), max_cost_usd=1.5)
    left = policy.give_up(job, planned(job), 0, answer(LaunchOutcome.UNKNOWN))
    assert left.steps[1].answer is not None
    assert left.steps[1].answer.code == "NotAsked: too expensive for the rest of max_cost_usd"


def test_rungs_are_asked_from_the_top() -> None:
    assert INTENT.next_place == 0
    assert record_answer(INTENT, 0, LaunchOutcome.NO_CAPACITY).next_place == 1


def test_an_unknown_outcome_repeats_the_same_rung() -> None:
    assert record_answer(INTENT, 0, LaunchOutcome.UNKNOWN).next_place == 0


def test_nothing_is_asked_after_a_launch() -> None:
    assert policy.record_answer(INTENT, 1, LAUNCHED, recovering=False).next_place is None


def test_a_terminated_token_raises_the_generation_and_asks_the_same_rung() -> None:
    renewed = record_answer(INTENT, 0, LaunchOutcome.RENEW)
    assert renewed.steps[0].generation == 1
    assert renewed.next_place == 0


def test_a_quota_closes_the_rungs_that_share_it_and_no_others() -> None:
    mixed = replace(INTENT, steps=(*INTENT.steps, replace(INTENT.steps[0], rung=rung("eu-central-1a", "p4d.24xlarge"))))
    closed = record_answer(mixed, 0, LaunchOutcome.QUOTA)
    assert [step.answer is not None for step in closed.steps] == [True, True, True, False]
    assert closed.next_place == 3


@pytest.mark.parametrize(
    ("market", "one", "other", "share"),
    [
        (Market.SPOT, "p4d.24xlarge", "p3.16xlarge", True),
        (Market.SPOT, "p4d.24xlarge", "p5.48xlarge", False),
        (Market.SPOT, "p5.48xlarge", "p5en.48xlarge", True),
        (Market.SPOT, "p5.48xlarge", "p6-b200.48xlarge", False),
        (Market.SPOT, "p3.16xlarge", "g5.xlarge", False),
        (Market.ON_DEMAND, "p4d.24xlarge", "p5.48xlarge", True),
    ],
)
def test_quotas_of_p_types_are_those_of_their_market(market: Market, one: str, other: str, share: bool) -> None:
    rungs = [replace(rung("eu-central-1a", kind), market=market) for kind in (one, other)]
    intent = replace(INTENT, steps=tuple(replace(INTENT.steps[0], rung=each) for each in rungs))
    assert (record_answer(intent, 0, LaunchOutcome.QUOTA).steps[1].answer is not None) is share


def test_during_a_recovery_a_quota_is_missing_capacity() -> None:
    one = record_answer(INTENT, 0, LaunchOutcome.QUOTA, recovering=True)
    assert one.steps[0].answer is not None
    assert one.steps[0].answer.outcome is LaunchOutcome.NO_CAPACITY
    assert one.next_place == 1


def test_a_closed_region_drops_all_of_its_rungs_only() -> None:
    abroad = replace(
        INTENT, steps=(*INTENT.steps, replace(INTENT.steps[0], rung=rung("us-east-1a", region="us-east-1")))
    )
    assert record_answer(abroad, 0, LaunchOutcome.CLOSED).next_place == 3


def test_no_capacity_is_worth_another_walk_until_patience_is_over() -> None:
    empty = everywhere(LaunchOutcome.NO_CAPACITY)
    assert isinstance(policy.find_error(empty, NOW), CapacityPending)
    assert isinstance(policy.find_error(empty, NOW + 1800), CapacityUnavailable)


def test_quotas_everywhere_are_named_as_such() -> None:
    assert isinstance(policy.find_error(everywhere(LaunchOutcome.QUOTA), NOW), QuotaExceeded)


def test_a_quota_on_some_rungs_is_not_final_while_others_lack_capacity() -> None:
    mixed = record_answer(
        record_answer(everywhere(LaunchOutcome.NO_CAPACITY), 0, LaunchOutcome.QUOTA), 1, LaunchOutcome.NO_CAPACITY
    )
    assert isinstance(policy.find_error(mixed, NOW), CapacityPending)


def test_a_quota_is_not_final_while_a_rung_has_not_been_asked() -> None:
    """The invocation died there. Whoever begins a new walk asks the other rung first."""
    half = replace(
        INTENT,
        steps=tuple(replace(INTENT.steps[0], rung=one) for one in (rung(), rung("eu-central-1a", "p4d.24xlarge"))),
    )
    assert isinstance(policy.find_error(record_answer(half, 0, LaunchOutcome.QUOTA), NOW), CapacityPending)


def test_two_rungs_of_a_plan_never_share_a_token() -> None:
    intent = planned(JOB)
    marks = {token(step, intent.user_data) for step in intent.steps}
    assert len(marks) == len(intent.steps)
    assert all(len(mark) == 64 for mark in marks)


def test_the_token_changes_with_the_generation_the_script_and_the_deadline() -> None:
    base = build_arguments(JOB, 1, rung(), group="g", security_group="sg-1", marks=LaunchMarks(profile="p"))
    other = build_arguments(
        replace(JOB, deadline=JOB.deadline + 1),
        1,
        rung(),
        group="g",
        security_group="sg-1",
        marks=LaunchMarks(profile="p"),
    )
    step = Step(rung=rung(), request=base, walk=1)
    marks = {
        token(step, "a"), token(replace(step, generation=1), "a"), token(step, "b"), token(replace(step, request=other), "a"),
        token(replace(step), "a"), token(replace(step, walk=2), "a"),
    }  # fmt: skip
    assert len(marks) == 5


def test_an_intent_from_before_tokens_had_a_walk_keeps_its_token() -> None:
    """Its launch may be under way while the functions are replaced."""
    step = Step(rung=rung(), request={"MinCount": 2})
    old = hashlib.sha256(json.dumps([{"MinCount": 2}, "script", 0], sort_keys=True).encode()).hexdigest()
    assert token(step, "script") == old


UNKNOWN = LaunchAnswer(outcome=LaunchOutcome.UNKNOWN, at=NOW)
NONE_THERE = LaunchAnswer(outcome=LaunchOutcome.NO_CAPACITY, at=NOW)


@pytest.mark.parametrize(
    ("answer", "walk"), [(UNKNOWN, 1), (None, 1), (replace(NONE_THERE, doubted=True), 1), (NONE_THERE, 2)]
)
def test_a_later_walk_keeps_the_token_of_a_rung_that_may_have_launched_and_no_other(
    answer: LaunchAnswer | None, walk: int
) -> None:
    first = planned(JOB)
    before = replace(first, steps=tuple(replace(step, generation=3, answer=answer) for step in first.steps))
    again = policy.keep_doubts(
        replace(planned(JOB), steps=tuple(replace(step, walk=2) for step in first.steps)), before
    )
    assert {(step.walk, step.generation) for step in again.steps} == {(walk, 3 if walk == 1 else 0)}


def test_a_rung_that_was_never_asked_gets_a_token_of_its_walk() -> None:
    first = planned(JOB)
    before = replace(first, steps=tuple(replace(step, request={}) for step in first.steps))
    again = policy.keep_doubts(replace(first, steps=tuple(replace(step, walk=2) for step in first.steps)), before)
    assert {step.walk for step in again.steps} == {2}


def test_a_busy_placement_group_is_passed_over() -> None:
    for attempt in range(1, 5):
        intent = planned(JOB, attempt, busy={"group-a-0"})
        assert intent.steps[0].request["Placement"]["GroupName"] == "group-a-1"


def test_a_job_still_gets_a_group_when_all_are_busy() -> None:
    intent = planned(JOB, busy={"group-a-0", "group-a-1"})
    assert intent.steps[0].request["Placement"]["GroupName"] in {"group-a-0", "group-a-1"}


def test_instances_that_end_keep_no_placement_group_busy() -> None:
    one = Instance(
        id="i-1", region="eu-central-1", state="running", rank=0, address="", launched_at=NOW, placement_group="a"
    )
    assert policy.find_busy([one, replace(one, state="shutting-down", placement_group="b")]) == {"a"}
    assert policy.find_busy([replace(one, placement_group="")]) == set()


def test_every_rung_of_a_walk_asks_for_the_one_group_of_its_attempt() -> None:
    steps = planned(JOB, shared_with=("job-7",)).steps
    assert {arguments.security_group(step) for step in steps} == {"sg-2"}
    assert {step.shared_with for step in steps} == {("job-7",)}


def test_the_security_group_is_part_of_the_bytes_that_a_token_stands_for() -> None:
    made = [
        build_arguments(JOB, 1, rung(), group="g", security_group=one, marks=LaunchMarks(profile="p"))
        for one in ("sg-1", "sg-2")
    ]
    assert len({token(Step(rung=rung(), request=one), "a") for one in made}) == 2


def test_the_execution_shows_the_group_of_the_rung_that_launched_and_of_no_other() -> None:
    missed = policy.record_answer(
        planned(JOB, shared_with=("job-7",)), 0, answer(LaunchOutcome.NO_CAPACITY), recovering=False
    )
    first, second = policy.list_rungs(policy.record_answer(missed, 1, LAUNCHED, recovering=False))
    assert "security_group" not in first
    assert (second["security_group"], second["shared_with"]) == ("sg-2", ["job-7"])


def test_an_intent_of_a_version_before_is_shown_with_the_group_of_its_request() -> None:
    (rung,) = policy.list_rungs(
        policy.record_answer(replace(INTENT, steps=INTENT.steps[:1]), 0, LAUNCHED, recovering=False)
    )
    assert (rung["security_group"], rung["shared_with"]) == ("", [])


def test_a_type_without_cluster_placement_gets_no_group() -> None:
    alone = replace(JOB, ladder=(rung(cluster=False),))
    assert "GroupName" not in planned(alone).steps[0].request["Placement"]


@pytest.mark.parametrize("market", [Market.ON_DEMAND, Market.SPOT])
def test_everything_that_a_launch_makes_carries_the_settings_own_tags_too(market: Market) -> None:
    marks = LaunchMarks(profile="arn:p", tags={"CostCenter": "4711"})
    sent = build_arguments(JOB, 1, replace(rung(), market=market), group="", security_group="sg-1", marks=marks)
    kinds = {one["ResourceType"] for one in sent["TagSpecifications"]}
    assert kinds >= {"instance", "volume", "network-interface"}
    assert ("spot-instances-request" in kinds) == (market is Market.SPOT)
    for specification in sent["TagSpecifications"]:
        found = {tag["Key"]: tag["Value"] for tag in specification["Tags"]}
        assert found.keys() == {*TAGS_AT_LAUNCH, "CostCenter"}
        assert found["CostCenter"] == "4711"


def test_everything_that_a_launch_makes_carries_the_tags_of_its_request_too() -> None:
    job = replace(JOB, tags={"Project": "apollo"})
    sent = build_arguments(job, 1, rung(), group="", security_group="sg-1", marks=LaunchMarks(profile="arn:p"))
    for specification in sent["TagSpecifications"]:
        assert {"Key": "Project", "Value": "apollo"} in specification["Tags"]


def test_no_tag_of_a_request_replaces_one_of_the_settings_or_of_ours() -> None:
    """Admit refuses both; a deploy may have given the settings another tag since."""
    job = replace(JOB, tags={"CostCenter": "1", tags.JOB: "another", tags.NAME: "another", tags.DEADLINE: "9"})
    marks = LaunchMarks(profile="arn:p", tags={"CostCenter": "4711"})
    sent = build_arguments(job, 1, rung(), group="", security_group="sg-1", marks=marks)
    usual = build_arguments(JOB, 1, rung(), group="", security_group="sg-1", marks=marks)
    found, same = (
        [{tag["Key"]: tag["Value"] for tag in one["Tags"]} for one in arguments["TagSpecifications"]]
        for arguments in (sent, usual)
    )
    assert found == same


def test_no_tag_of_the_settings_replaces_one_of_the_job() -> None:
    marks = LaunchMarks(profile="arn:p", tags={tags.DEADLINE: "9", tags.DEPLOYMENT: "other"})
    sent = build_arguments(JOB, 1, rung(), group="", security_group="sg-1", marks=marks)
    for specification in sent["TagSpecifications"]:
        found = {tag["Key"]: tag["Value"] for tag in specification["Tags"]}
        assert (found[tags.DEADLINE], found[tags.DEPLOYMENT]) == (str(JOB.deadline), JOB.deployment)


def test_a_launch_is_all_or_nothing_and_carries_its_tags() -> None:
    sent = build_arguments(JOB, 2, rung(), group="", security_group="sg-1", marks=LaunchMarks(profile="arn:p"))
    assert sent["MinCount"] == sent["MaxCount"] == 2
    for specification in sent["TagSpecifications"]:
        assert {tag["Key"] for tag in specification["Tags"]} == set(TAGS_AT_LAUNCH)


def test_a_launch_names_its_subnet_in_the_network_interface_alone() -> None:
    sent = build_arguments(JOB, 1, rung(), group="", security_group="sg-1", marks=LaunchMarks(profile="arn:p"))
    assert not sent.keys() & {"SubnetId", "SecurityGroupIds", "SecurityGroups"}
    assert sent["NetworkInterfaces"][0]["AssociatePublicIpAddress"] is False


def test_disks_are_encrypted_with_the_key_of_their_region_and_else_with_the_accounts_default() -> None:
    place = replace(JOB.places[rung().region], volume_key="arn:aws:kms:eu-central-1:123456789012:key/1")
    own = build_arguments(
        replace(JOB, places={place.region: place}),
        1,
        rung(),
        group="",
        security_group="sg-1",
        marks=LaunchMarks(profile="arn:p"),
    )
    plain = build_arguments(JOB, 1, rung(), group="", security_group="sg-1", marks=LaunchMarks(profile="arn:p"))
    (disk,), (plain_disk,) = (one["BlockDeviceMappings"] for one in (own, plain))
    assert disk["Ebs"] == plain_disk["Ebs"] | {"KmsKeyId": place.volume_key}
    assert plain_disk["Ebs"]["Encrypted"] is True


def test_disks_of_the_images_further_devices_have_the_same_key_as_the_root() -> None:
    """With the account's default, which may be another key, EC2 would end the nodes as they start."""
    place = replace(JOB.places[rung().region], volume_key="arn:aws:kms:eu-central-1:123456789012:key/1")
    image = replace(rung().image, further_devices=("/dev/sdb", "/dev/sdc"))
    sent = build_arguments(
        replace(JOB, places={place.region: place}),
        1,
        replace(rung(), image=image),
        group="",
        security_group="sg-1",
        marks=LaunchMarks(profile="arn:p"),
    )
    assert [one["Ebs"]["KmsKeyId"] for one in sent["BlockDeviceMappings"]] == [place.volume_key] * 3


def test_a_disk_is_asked_to_be_faster_only_where_it_is_to_be() -> None:
    def build_disk(job: Job) -> dict[str, int]:
        sent = build_arguments(job, 1, rung(), group="", security_group="sg-1", marks=LaunchMarks(profile="arn:p"))
        return {
            key: value for key, value in sent["BlockDeviceMappings"][0]["Ebs"].items() if key in ("Iops", "Throughput")
        }

    assert build_disk(JOB) == {}
    assert build_disk(replace(JOB, volume_throughput=500)) == {"Throughput": 500}
    assert build_disk(replace(JOB, volume_iops=16_000, volume_throughput=1_000)) == {
        "Iops": 16_000,
        "Throughput": 1_000,
    }


def test_the_disks_of_the_images_further_snapshots_are_as_the_image_has_them() -> None:
    image = replace(rung().image, further_devices=("/dev/sdf",))
    fast = replace(JOB, volume_iops=16_000, volume_throughput=1_000)
    sent = build_arguments(
        fast, 1, replace(rung(), image=image), group="", security_group="sg-1", marks=LaunchMarks(profile="arn:p")
    )
    assert sent["BlockDeviceMappings"][1]["Ebs"] == {"Encrypted": True, "DeleteOnTermination": True}


def test_a_node_that_powers_itself_off_ends_with_its_disks() -> None:
    image = replace(rung().image, further_devices=("/dev/sdf",))
    sent = build_arguments(
        JOB, 1, replace(rung(), image=image), group="", security_group="sg-1", marks=LaunchMarks(profile="arn:p")
    )
    assert sent["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert [disk["Ebs"]["DeleteOnTermination"] for disk in sent["BlockDeviceMappings"]] == [True, True]


def test_values_of_the_user_data_are_data() -> None:
    text = build_user_data("#!/bin/bash\nset -u\n", {"A": "x'; rm -rf /; '"})
    assert text.splitlines() == ["#!/bin/bash", "A='x'\"'\"'; rm -rf /; '\"'\"''", "set -u"]
