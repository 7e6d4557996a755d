"""Jobs of one deployment take their security groups, on the fake of AWS: one after the other, at once, again, and too many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from contract import items
from contract.codec import decode, encode
from contract.groups import TakenGroups
from contract.jobs import Job
from contract.places import Place
from tests.builders import JOB, PLACE, rung
from tests.fakes.aws import Aws
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.functions import Functions, Outcome
from tests.fakes.state import store, stored
from tests.fakes.yard import ABROAD, admitted, deployed, home


@dataclass
class Yard:
    """A deployment with several jobs."""

    aws: Aws
    functions: Functions

    def launch(self, job: str, *mishaps: Mishap, attempt: int = 1) -> Outcome:
        return self.functions.invoke("launcher", {"job": job, "attempt": attempt}, mishaps)

    def launched(self, job: str, *mishaps: Mishap, attempt: int = 1) -> dict[str, Any]:
        """What the execution shows of the rung that launched."""
        outcome = self.launch(job, *mishaps, attempt=attempt)
        assert outcome.error == "", outcome
        rungs: Sequence[dict[str, Any]] = outcome.value["rungs"]
        return rungs[-1]

    def terminate(self, job: str, attempt: int = 1) -> None:
        event = {"job": job, "attempt": attempt, "problem": None}
        for _ in range(40):
            if not self.functions.invoke("terminator", event).error:
                return
            self.aws.clock.run(JOB.timing.terminate_again_s)
        raise AssertionError("Terminate never succeeded")

    def groups_of(self, job: str, region: str = PLACE.region) -> set[str]:
        """Of the job's instances that are not terminated."""
        now, every = self.aws.clock.now, self.aws.ec2[region].machines.values()
        mine = [one for one in every if one.tags["trainyard:job"] == job and one.state(now) != "terminated"]
        return {group for one in mine for group in one.request["NetworkInterfaces"][0]["Groups"]}

    def taken(self, region: str = PLACE.region) -> dict[str, str]:
        """Job to the group that it took."""
        found = stored(self.aws, items.groups(region))
        return {one.job: one.group for one in decode(TakenGroups, found or b"{}").taken}


@contextmanager
def yard_of(*jobs: str, place: Place = PLACE) -> Iterator[Yard]:
    aws = deployed(places=(place, ABROAD))
    for job in jobs:
        admitted(aws, replace(JOB, id=job, places={place.region: place}))
    made = Yard(aws, Functions(aws))
    with made.functions.installed():
        yield made


@pytest.fixture
def yard() -> Iterator[Yard]:
    with yard_of("a", "b", "c", "d") as made:
        yield made


@pytest.fixture
def narrow() -> Iterator[Yard]:
    """A pool of one group."""
    with yard_of("a", "b", place=replace(PLACE, security_groups=("sg-1",))) as made:
        yield made


def test_all_nodes_of_an_attempt_have_one_group_and_no_two_jobs_the_same(yard: Yard) -> None:
    shown = [yard.launched(job) for job in "abc"]
    assert [yard.groups_of(job) for job in "abc"] == [{one["security_group"]} for one in shown]
    assert len({one["security_group"] for one in shown}) == 3
    assert [one["shared_with"] for one in shown] == [[]] * 3


def test_a_launch_says_whom_its_nodes_can_reach(narrow: Yard) -> None:
    assert narrow.launch("a").value["network"] == "sg-1: no other job has this security group"
    second = narrow.launch("b").value
    assert second["network"].startswith(
        "sg-1: shared with a, because all security groups of eu-central-1 (1) were in use"
    )
    assert second["rungs"][-1]["shared_with"] == ["a"]


def test_a_repeat_says_the_same(narrow: Yard) -> None:
    narrow.launch("a")
    first = narrow.launch("b").value
    narrow.terminate("a")
    assert narrow.launch("b").value == first


@pytest.mark.parametrize(
    "operation", ["dynamodb:PutItem", "dynamodb:GetItem", "ec2:DescribeInstances", "ec2:RunInstances"]
)
@pytest.mark.parametrize("first", [True, False], ids=["the first of the region", "later ones"])
def test_two_launches_at_once_take_two_groups(operation: str, first: bool) -> None:
    """By their names alone the two would have the same one."""
    other: list[Outcome] = []
    with yard_of("ab", "ba", "c") as yard:
        if not first:
            yard.launched("c")
        shown = yard.launched("ab", Mishap(operation, meanwhile=lambda: other.append(yard.launch("ba"))))
    found = [shown, other[0].value["rungs"][-1]]
    assert len({one["security_group"] for one in found}) == 2
    assert [one["shared_with"] for one in found] == [[], []]


def test_two_launches_at_once_that_have_to_share_both_leave_their_names(narrow: Yard) -> None:
    other: list[Outcome] = []
    first = narrow.launched("a", Mishap("dynamodb:PutItem", meanwhile=lambda: other.append(narrow.launch("b"))))
    assert (first["shared_with"], other[0].value["rungs"][-1]["shared_with"]) == (["b"], [])
    assert narrow.taken() == {"a": "sg-1", "b": "sg-1"}


def test_a_group_is_taken_before_its_nodes_are_asked_for(yard: Yard) -> None:
    yard.launch("a", Mishap("ec2:RunInstances", death=Death.BEFORE))
    assert yard.groups_of("a") == set()
    assert yard.launched("b")["security_group"] != yard.taken()["a"]


def test_nodes_that_ec2_does_not_show_yet_keep_their_group(yard: Yard) -> None:
    home(yard.aws).invisible_s = 1000.0
    for job in "abc":
        yard.launch(job, Mishap("ec2:CreateTags", death=Death.BEFORE))
    assert sorted(group for job in "abc" for group in yard.groups_of(job)) == ["sg-1", "sg-2", "sg-3"]


@pytest.mark.parametrize("death", Death)
def test_a_launcher_that_was_killed_goes_on_with_the_same_bytes(yard: Yard, death: Death) -> None:
    yard.launch("a", Mishap("ec2:RunInstances", death=death))
    yard.aws.clock.run(301)
    assert yard.launched("a")["security_group"] == yard.taken()["a"]
    assert yard.groups_of("a") == {yard.taken()["a"]}
    sent = [call.params["NetworkInterfaces"] for call in yard.aws.calls if call.operation == "RunInstances"]
    assert all(one == sent[0] for one in sent)


@pytest.mark.parametrize("kind", [Kind.LOST, Kind.ERROR_AFTER, Kind.THROTTLED])
def test_a_write_whose_answer_is_lost_takes_one_group(yard: Yard, kind: Kind) -> None:
    assert yard.launched("a", Mishap("dynamodb:PutItem", fault=kind))["shared_with"] == []
    assert len(yard.taken()) == 1


def test_the_second_attempt_of_a_job_keeps_its_group(yard: Yard) -> None:
    first = yard.launched("a")
    yard.launched("b")
    yard.aws.clock.run(60)
    yard.terminate("a")
    assert yard.launched("a", attempt=2)["security_group"] == first["security_group"]


def test_a_job_that_has_ended_leaves_its_group_once_its_instances_are_terminated(narrow: Yard) -> None:
    narrow.launched("a")
    narrow.aws.clock.run(60)
    narrow.terminate("a")
    assert narrow.launched("b")["shared_with"] == ["a"], "its nodes still shut down"
    narrow.aws.clock.run(home(narrow.aws).shutting_s + 60)
    assert narrow.launched("b", attempt=2)["shared_with"] == []
    assert narrow.taken() == {"b": "sg-1"}


def test_nothing_is_read_for_jobs_whose_nodes_run() -> None:
    """With 300 of them, every walk of every other job took seconds longer."""
    names = ("a", "b", "c", "d", "last")
    with yard_of(*names) as yard:
        reads = []
        for name in names:
            before = len(yard.aws.calls)
            yard.launched(name)
            reads.append(sum(call.operation in {"GetItem", "Query"} for call in yard.aws.calls[before:]))
            yard.aws.clock.run(60)
        assert len(set(reads)) == 1, reads


def test_a_job_that_waits_for_capacity_keeps_its_group(narrow: Yard) -> None:
    for one in JOB.ladder:
        home(narrow.aws).capacity[one.instance_type, one.zone] = 0
    assert narrow.launch("a").error == "CapacityPending"
    home(narrow.aws).capacity.clear()
    narrow.aws.clock.run(600)
    assert narrow.launched("b")["shared_with"] == ["a"]


def test_a_closed_attempt_keeps_its_group_while_a_launch_of_it_may_be_on_its_way(narrow: Yard) -> None:
    found: list[dict[str, Any]] = []

    def meanwhile() -> None:
        store(narrow.aws, items.closed("a", 1), b"{}")
        found.append(narrow.launched("b"))

    narrow.launch("a", Mishap("ec2:RunInstances", meanwhile=meanwhile))
    assert found[0]["shared_with"] == ["a"]


def test_an_attempt_that_was_closed_before_its_intent_launches_nothing_into_a_group_that_others_took(
    narrow: Yard,
) -> None:
    found: list[dict[str, Any]] = []

    def meanwhile() -> None:
        narrow.terminate("a")
        found.append(narrow.launched("b"))

    intent = Mishap("dynamodb:PutItem", nth=1, meanwhile=meanwhile)
    assert narrow.launch("a", intent).error == "NodeLost"
    assert found[0]["shared_with"] == []
    assert narrow.groups_of("a") == set()


def test_a_job_of_which_an_orphan_runs_keeps_its_group(narrow: Yard) -> None:
    narrow.launched("a")
    narrow.aws.clock.run(60)
    store(narrow.aws, items.closed("a", 1), b"{}")
    narrow.aws.clock.run(JOB.max_hours * 3600 + 3 * 86400)
    assert narrow.launched("b")["shared_with"] == ["a"]


def test_a_table_that_was_restored_without_the_item_learns_from_ec2(yard: Yard) -> None:
    first = yard.launched("a")
    yard.aws.clock.run(60)
    store(yard.aws, items.groups(PLACE.region), encode(TakenGroups()))
    for job in "bc":
        assert yard.launched(job)["security_group"] != first["security_group"]


def test_a_job_of_a_version_before_has_a_pool_of_one(yard: Yard) -> None:
    """Its Place has the one group that all nodes had, which is the first of the pool now."""
    document = encode(replace(JOB, id="old")).replace(
        b'"security_groups": ["sg-1", "sg-2", "sg-3"]', b'"security_groups": []'
    )
    old = decode(Job, document)
    assert old.places[PLACE.region].security_groups == ("sg-1",)
    store(yard.aws, items.job("old"), encode(old))
    assert yard.launched("old")["security_group"] == "sg-1"
    assert "sg-1" not in {yard.launched(job)["security_group"] for job in "ab"}


def test_regions_have_pools_of_their_own(yard: Yard) -> None:
    abroad = replace(JOB, id="e", ladder=(rung("eu-west-1a", region=ABROAD.region),), places={ABROAD.region: ABROAD})
    admitted(yard.aws, abroad)
    yard.launched("a")
    group = yard.launched("e")["security_group"]
    assert yard.groups_of("e", ABROAD.region) == {group} <= set(ABROAD.security_groups)
    assert (yard.taken().keys(), yard.taken(ABROAD.region)) == ({"a"}, {"e": group})


def test_a_launcher_that_loses_every_race_says_so_before_its_time_is_over(yard: Yard) -> None:
    number = iter(range(10_000))

    def meanwhile() -> None:
        store(yard.aws, items.groups(PLACE.region), encode(TakenGroups()) + b" " * (next(number) % 7))

    outcome = yard.launch("a", Mishap("dynamodb:PutItem", times=10_000, meanwhile=meanwhile))
    assert outcome.error == "CapacityPending"
    assert yard.groups_of("a") == set()
