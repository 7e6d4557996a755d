"""`cdk destroy --all` by the real command line with a job running: nothing runs afterwards, and no stack is left.

The file is named so that its tests run last: they take the deployment away that all others share.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from contract import keys, tags
from rehearsal.account import DeployedAccount
from rehearsal.deployment import DeploymentFailed
from rehearsal.permissions import judge
from rehearsal.simulator import Policies
from rehearsal.yard import Job, Yard
from tests.rehearsal.conftest import DOOMED, REGIONS
from tests.rehearsal.jobs import ONE, instances, left, train

pytestmark = [pytest.mark.rehearsal, pytest.mark.timeout(280)]
TOOLKIT = "CDKToolkit"
"""The bootstrap's own, which a destroy never touches."""
DRAIN = ("DrainRole", "DrainMachineRole")
IMAGES = "trainyard-images"
"""Deployed last, so destroyed first of all: it holds nothing that runs, and its end takes nothing away."""


@pytest.fixture(scope="module")
def doomed(unattended: dict[str, Job]) -> Job:
    """A job that trains for ever."""
    job, end = unattended[DOOMED], time.monotonic() + 120
    while not any(report.progress for report in job.reports(1).values()):
        assert time.monotonic() < end
        time.sleep(0.3)
    return job


@pytest.fixture(scope="module")
def account(yard: Yard) -> DeployedAccount:
    return DeployedAccount(yard)


@pytest.fixture(scope="module")
def policies(account: DeployedAccount) -> dict[str, Policies]:
    """As they were before the roles went."""
    return account.policies()


@pytest.fixture
def protected(yard: Yard, doomed: Job) -> Iterator[str]:
    """Id of the job's instance, which a person wants to keep."""
    (one,) = left(doomed)
    tag = {"Key": tags.PROTECTED, "Value": "a person looks at it"}
    yard.client("ec2").create_tags(Resources=[one], Tags=[tag])
    yield one
    yard.client("ec2").delete_tags(Resources=[one], Tags=[tag])


def stacks(yard: Yard) -> dict[str, str]:
    found = yard.client("cloudformation").describe_stacks()["Stacks"]
    return {one["StackName"]: one["StackStatus"] for one in found if one["StackName"] != TOOLKIT}


def test_a_destroy_refuses_loudly_while_a_person_protects_an_instance(
    yard: Yard,
    doomed: Job,
    protected: str,
    policies: dict[str, Policies],  # noqa: ARG001  (read while there are roles)
) -> None:
    before = stacks(yard)
    with pytest.raises(DeploymentFailed) as refused:
        yard.cdk.destroy(yard.assembly)
    assert protected in str(refused.value)
    assert tags.PROTECTED in str(refused.value)
    assert before.pop(IMAGES)
    assert stacks(yard) == {**before, "trainyard-reaper": "DELETE_FAILED"}
    assert left(doomed) == [protected]


def test_nothing_is_admitted_once_a_destroy_has_begun(yard: Yard, trainer: str) -> None:
    late = yard.start({**ONE, "code": trainer, "command": train(1, 0.1)}, "too-late")
    execution = late.wait(60)
    assert (execution["status"], execution["error"]) == ("FAILED", "InvalidRequest")
    assert "is being destroyed" in execution["cause"]
    assert instances(late) == []


def test_a_destroy_with_a_running_job_leaves_no_instance_and_no_stack(yard: Yard, doomed: Job) -> None:
    assert doomed.describe()["status"] == "RUNNING"
    (only,) = left(doomed)
    with yard.without("terminate-refused"):  # a job of test_unattended.py has it, where that has not run
        yard.cdk.destroy(yard.assembly)
    assert stacks(yard) == {}
    pages = yard.client("ec2").get_paginator("describe_instances").paginate()
    found = [one for page in pages for reservation in page["Reservations"] for one in reservation["Instances"]]
    assert [one["InstanceId"] for one in found if one["State"]["Name"] != "terminated"] == []
    assert only in {one["InstanceId"] for one in found}
    assert yard.nodes.running() == 0


def test_no_other_stack_is_touched_before_the_drain_is_done(yard: Yard) -> None:
    calls = list(yard.aws.recorder.calls)
    deletions = [(call.at, call.parameters["StackName"]) for call in calls if call.action == "DeleteStack"]
    others = [at for at, stack in deletions if "trainyard-reaper" not in stack and IMAGES not in stack]
    assert len(others) == len(["workflow", "builds", *REGIONS, "foundation"])
    assert max(call.at for call in calls if any(name in call.role for name in DRAIN)) < min(others)


@pytest.mark.parametrize("region", [place["region"] for place in REGIONS])
def test_a_destroy_leaves_no_stack_in_any_region(yard: Yard, region: str) -> None:
    found = yard.client("cloudformation", region).describe_stacks()["Stacks"]
    assert [one["StackName"] for one in found if one["StackName"] != TOOLKIT] == []


def test_the_data_stays(yard: Yard, doomed: Job) -> None:
    prefix = keys.JobPrefix(doomed.name)
    kept = doomed._listed(yard.places.home, prefix.root)
    assert {prefix.description, prefix.result} <= set(kept)


def test_no_call_of_the_drain_would_be_denied(
    yard: Yard, account: DeployedAccount, policies: dict[str, Policies]
) -> None:
    roles = {role for role in policies if any(name in role for name in DRAIN)}
    verdicts = judge([call for call in list(yard.aws.recorder.calls) if call.role in roles], policies, account)
    assert {one.request.principal for one in verdicts} == roles
    assert [(one.call.name, one.request, one.answer.error) for one in verdicts if not one.answer.allowed] == []
    assert {"states:StopExecution", "ec2:TerminateInstances"} <= {one.call.name for one in verdicts}
