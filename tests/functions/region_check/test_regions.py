"""Several regions, on the fake: which of them a deploy may forget, and a job whose region is not home."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pytest

from contract import items, names
from contract.places import Place
from region_check.policy import forgotten, refusals
from tests.builders import JOB, PLACE, rung
from tests.fakes.aws import Aws
from tests.fakes.cloudformation import CloudFormation
from tests.fakes.faults import Kind, Mishap
from tests.fakes.functions import Functions
from tests.fakes.state import store, stored
from tests.fakes.yard import ABROAD, admitted, deployed

HOME, AWAY, GRID = PLACE.region, ABROAD.region, "ap-south-1"


@dataclass
class Yard:
    """A deployment whose workflow stack is being changed, and a CloudFormation that waits for answers."""

    aws: Aws
    functions: Functions
    cloudformation: CloudFormation
    status: str = "UPDATE_IN_PROGRESS"

    def ask(self, kind: str, settings: Iterable[str], before: Iterable[str] = (), *mishaps: Mishap) -> str:
        """The reason of the answer, empty where the change is let through."""
        request = self.cloudformation.request(kind, {"Regions": list(settings)}, stack="yard-workflow")
        if kind == "Update":
            request["OldResourceProperties"] = {"ServiceToken": "arn", "Regions": list(before)}
        self.aws.directory.stacks[request["StackId"]] = self.status
        assert self.functions.invoke("region_check", request, mishaps).error == ""
        answer = self.cloudformation.answers[-1]
        assert answer["PhysicalResourceId"] == "yard-regions"
        assert answer["Status"] == ("FAILED" if answer["Reason"] else "SUCCESS")
        return str(answer["Reason"])

    def update(self, before: Iterable[str], settings: Iterable[str], *mishaps: Mishap) -> str:
        return self.ask("Update", settings, before, *mishaps)

    def stands(self, *regions: str) -> None:
        for region in regions:
            self.aws.directory.parameters[region, names.region_parameter("yard", region)] = "{}"

    def launched(self, *regions: str) -> None:
        for region in regions:
            store(self.aws, items.region(region), b"{}")


@pytest.fixture
def yard(cloudformation: CloudFormation) -> Iterator[Yard]:
    aws = deployed()
    made = Yard(aws, Functions(aws), cloudformation)
    with made.functions.installed():
        yield made


# Which regions a deploy may forget


def test_a_region_whose_stack_stands_is_not_forgotten_and_the_answer_says_what_to_do(yard: Yard) -> None:
    yard.stands(HOME, GRID)
    reason = yard.update([HOME, GRID], [HOME])
    assert reason == (
        "Region ap-south-1 was removed from the settings while its stack yard-region-ap-south-1 exists. Put it back, run "
        "`npx cdk destroy --exclusively yard-region-ap-south-1`, then remove it and deploy again (docs/guides/regions.md)."
    )


def test_a_region_whose_stack_is_gone_is_forgotten(yard: Yard) -> None:
    yard.stands(HOME)
    yard.launched(GRID)
    assert yard.update([HOME, GRID], [HOME]) == ""


def test_every_region_that_stands_has_a_line_of_its_own(yard: Yard) -> None:
    yard.stands(AWAY, GRID)
    reason = yard.update([HOME, GRID, AWAY], [HOME])
    assert [line.split()[1] for line in reason.splitlines()] == [GRID, AWAY]


def test_a_region_that_is_added_is_asked_nothing(yard: Yard) -> None:
    yard.stands(HOME, GRID)
    assert yard.update([HOME], [HOME, GRID]) == ""
    assert [call for call in yard.aws.calls if call.service == "ssm"] == []


@pytest.mark.parametrize("status", ["UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"])
def test_a_rollback_is_never_kept_from_its_way_back(yard: Yard, status: str) -> None:
    """A deploy that added a region and failed: its stack stands by then, and going back forgets it."""
    yard.status = status
    yard.stands(HOME, GRID)
    yard.launched(GRID)
    assert yard.update([HOME, GRID], [HOME]) == ""


def test_a_rollback_needs_no_region_to_answer(yard: Yard) -> None:
    yard.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    silent = Mishap("s*", times=math.inf, fault=Kind.UNREACHABLE)
    assert yard.update([HOME, GRID], [HOME], silent) == ""


def test_whether_a_stack_goes_back_that_cannot_be_learnt_refuses_the_change(yard: Yard) -> None:
    reason = yard.update([HOME, GRID], [HOME], Mishap("cloudformation:*", times=math.inf, fault=Kind.DENIED))
    assert "AccessDenied" in reason


def test_a_new_workflow_stack_forgets_no_region_where_something_was_launched_and_that_stands(yard: Yard) -> None:
    yard.stands(AWAY)
    yard.launched(HOME, AWAY)
    reason = yard.ask("Create", [HOME])
    assert "yard-region-eu-west-1 exists" in reason


def test_a_new_workflow_stack_in_an_account_without_any_other_region_is_let_through(yard: Yard) -> None:
    yard.launched(HOME)
    assert yard.ask("Create", [HOME]) == ""


@pytest.mark.parametrize("kind", [Kind.DENIED, Kind.UNREACHABLE, Kind.ERROR])
def test_a_region_that_does_not_answer_is_not_forgotten(yard: Yard, kind: Kind) -> None:
    reason = yard.update([HOME, GRID], [HOME], Mishap("ssm:*", times=math.inf, region=GRID, fault=kind))
    assert "Trainyard does not know whether its stack yard-region-ap-south-1 exists" in reason


def test_forty_regions_that_do_not_answer_are_told_before_cloudformation_gives_up(yard: Yard) -> None:
    many = [f"xx-east-{number}" for number in range(40)]
    before = yard.aws.clock.now
    assert yard.update([HOME, *many], [HOME], Mishap("ssm:*", times=math.inf, fault=Kind.ERROR))
    assert yard.aws.clock.now - before < 120


def test_a_destroy_is_never_kept_from_its_end(yard: Yard) -> None:
    yard.stands(AWAY, GRID)
    yard.launched(AWAY, GRID)
    assert yard.ask("Delete", [HOME]) == ""
    assert yard.aws.calls == []


def test_the_same_question_twice_has_the_same_answer(yard: Yard) -> None:
    yard.stands(GRID)
    assert yard.update([HOME, GRID], [HOME]) == yard.update([HOME, GRID], [HOME])


def test_nothing_is_refused_for_regions_that_the_settings_name() -> None:
    assert forgotten([HOME, AWAY], [AWAY], [HOME]) == []
    assert refusals("yard", {HOME: False}) == []


# A job whose region is not home


@pytest.fixture
def abroad(cloudformation: CloudFormation) -> Iterator[Yard]:
    """Two training regions; a job of two nodes runs in the one that is not home, and knows no other."""
    aws = deployed(places=(PLACE, ABROAD))
    there: dict[str, Place] = {AWAY: ABROAD}
    admitted(aws, replace(JOB, ladder=(rung("eu-west-1a", region=AWAY),), places=there))
    made = Yard(aws, Functions(aws), cloudformation)
    with made.functions.installed():
        launched = made.functions.invoke("launcher", {"job": JOB.id, "attempt": 1})
        assert (launched.error, launched.value["region"]) == ("", AWAY)
        aws.clock.run(60)
        yield made


def running(yard: Yard) -> list[str]:
    machines = [one for ec2 in yard.aws.ec2.values() for one in ec2.machines.values()]
    return [one.id for one in machines if one.state(yard.aws.clock.now) not in {"shutting-down", "terminated"}]


def test_a_launch_away_from_home_calls_ec2_there_alone_and_writes_at_home(abroad: Yard) -> None:
    assert {call.region for call in abroad.aws.calls if call.service == "ec2"} == {AWAY}
    assert stored(abroad.aws, items.region(AWAY)) is not None
    assert len(running(abroad)) == 2


def test_the_clock_sees_nodes_of_another_region_go_whose_events_home_never_hears(abroad: Yard) -> None:
    """An attempt whose nodes are gone fails at the next minute."""
    wait = abroad.aws.states.wait(heartbeat_s=300.0, timeout_s=3600.0)
    token = {"action": "token", "job": JOB.id, "attempt": 1, "token": wait.token}
    assert abroad.functions.invoke("attendant", token).error == ""
    assert wait.error is None
    for one in abroad.aws.ec2[AWAY].machines.values():
        abroad.aws.ec2[AWAY].end(one, "Server.SpotInstanceTermination", "gone")
    abroad.aws.clock.run(15)
    assert abroad.functions.invoke("attendant", {}).error == ""
    assert wait.error is not None
    assert wait.error[0] == "Interrupted"


@pytest.mark.parametrize("kind", [Kind.UNREACHABLE, Kind.DENIED, Kind.THROTTLED])
def test_a_home_whose_ec2_is_silent_keeps_no_job_of_another_region_from_its_end(abroad: Yard, kind: Kind) -> None:
    outage = Mishap("ec2:*", times=math.inf, region=HOME, fault=kind)
    terminate = {"job": JOB.id, "attempt": 1, "problem": None}
    abroad.functions.invoke("terminator", terminate, [outage])
    abroad.aws.clock.run(15)  # what EC2 shows lags
    assert abroad.functions.invoke("terminator", terminate, [outage]).error == ""
    assert running(abroad) == []


def test_a_job_that_cannot_be_read_is_looked_for_in_every_region(abroad: Yard) -> None:
    store(abroad.aws, items.job(JOB.id), b"no json")
    abroad.functions.invoke("terminator", {"job": JOB.id, "attempt": 1, "problem": None})
    assert running(abroad) == []
    assert HOME in {call.region for call in abroad.aws.calls if call.service == "ec2"}
