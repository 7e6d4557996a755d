"""`cdk destroy --all` by the real command line with a job running: nothing runs afterwards, and no stack is left.

Its tests run last: they take the deployment away that all others share.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from contract import keys, names, tags
from localaws.iam.permissions import judge
from localaws.iam.simulator import Policies
from localaws.testing.waiting import until
from rehearsal.account import DeployedAccount
from rehearsal.deployment import DeploymentFailed
from rehearsal.grid import GridJob
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.conftest import DOOMED, REGIONS
from tests.rehearsal.grids import AWAY, ENDLESS, HOME, Field, sooner
from tests.rehearsal.jobs import ONE, failed, instances, left, train

pytestmark = [pytest.mark.rehearsal, pytest.mark.turn("destroys")]
TOOLKIT = "CDKToolkit"
"""The bootstrap's own, which a destroy never touches."""
DRAIN = ("DrainRole", "DrainMachineRole")
FIRST = "trainyard-search"
"""The first stack that a destroy takes away, after those in which nothing runs."""
IDLE = ("trainyard-images", "trainyard-dashboard")
"""Deployed last, so destroyed first of all: they hold nothing that runs, and their end takes nothing away."""


@pytest.fixture(scope="module")
def doomed(unattended: dict[str, StartedJob]) -> StartedJob:
    """A job that trains for ever."""
    job = unattended[DOOMED]
    until(lambda: any(report.progress for report in job.reports(1).values()))
    return job


@pytest.fixture(scope="module")
def doomed_grid(yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> GridJob:
    """Trains for ever in two regions."""
    with sooner(yard):
        field = Field.of(yard, tmp_path_factory.mktemp("small"))
        lines = [field.line(region, hyperparameters=ENDLESS) for region in (HOME, AWAY)]
        grid = field.start("doomed-grid", *lines)
        until(lambda: grid.progress() == {"Training": 2})
    return grid


@pytest.fixture(scope="module")
def account(yard: Yard) -> DeployedAccount:
    return yard.account()


@pytest.fixture(scope="module")
def policies(account: DeployedAccount) -> dict[str, Policies]:
    """As they were before the roles went."""
    return account.policies()


@pytest.fixture
def protected(yard: Yard, doomed: StartedJob) -> Iterator[str]:
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
    doomed: StartedJob,
    doomed_grid: GridJob,  # noqa: ARG001  (it begins while grids are admitted)
    protected: str,
    policies: dict[str, Policies],  # noqa: ARG001  (read while there are roles)
) -> None:
    before = stacks(yard)
    with pytest.raises(DeploymentFailed) as refused:
        yard.cdk.destroy(yard.assembly)
    assert protected in refused.value.whole
    assert tags.PROTECTED in refused.value.whole
    assert all(before.pop(one) for one in IDLE)
    assert stacks(yard) == {**before, FIRST: "DELETE_FAILED"}
    assert left(doomed) == [protected]


def test_nothing_is_admitted_once_a_destroy_has_begun(yard: Yard, trainer: str) -> None:
    late = yard.start({**ONE, "code": trainer, "command": train(1, 0.1)}, "too-late")
    assert "is being destroyed" in failed(late, "InvalidRequest")
    assert instances(late) == []


def test_a_destroy_with_a_running_job_leaves_no_instance_and_no_stack(yard: Yard, doomed: StartedJob) -> None:
    assert doomed.describe()["status"] == "RUNNING"
    (only,) = left(doomed)
    with yard.without("terminate-refused"):  # a job of test_unattended.py has it, where that has not run
        yard.cdk.destroy(yard.assembly)
    assert stacks(yard) == {}
    assert yard.client("cloudwatch").list_dashboards()["DashboardEntries"] == []
    assert yard.client("logs").describe_query_definitions()["queryDefinitions"] == []
    assert [one["InstanceId"] for one in instances(doomed)] == [only]
    assert yard.nodes.left() == yard.nodes.running() == 0


def test_a_grid_that_runs_when_a_destroy_begins_is_stopped_in_every_region(doomed_grid: GridJob) -> None:
    stopped = {
        call.parameters["executionArn"] for call in doomed_grid.yard.aws.recorder.of(name="states:StopExecution")
    }
    assert doomed_grid.arn in stopped
    assert {(one.region, one.status) for one in doomed_grid.trainings()} == {(HOME, "Stopped"), (AWAY, "Stopped")}
    assert doomed_grid.trainings_left() == doomed_grid.children_left() == []
    until(lambda: doomed_grid.processes_left() == 0)
    assert doomed_grid.read(doomed_grid.prefix.stopped)


def test_no_other_stack_is_touched_before_the_drain_is_done(yard: Yard) -> None:
    """The drain is the first step of the end of the searches' stack; those of the other stacks find nothing."""
    calls = list(yard.aws.recorder.calls)
    deletions = [(call.at, call.parameters["StackName"]) for call in calls if call.action == "DeleteStack"]
    others = [at for at, stack in deletions if not any(one in stack for one in (FIRST, *IDLE))]
    assert len(others) == len(["grid", "pages", "workflow", "reaper", "builds", *REGIONS, "foundation"])
    ends = {"StopExecution", "TerminateInstances", "StopTrainingJob", "TerminateJob"}
    drains = [call.at for call in calls if call.action in ends and any(name in call.role for name in DRAIN)]
    assert drains
    assert max(drains) < min(others)


@pytest.mark.parametrize("region", [place["region"] for place in REGIONS])
def test_a_destroy_leaves_no_stack_in_any_region(yard: Yard, region: str) -> None:
    found = yard.client("cloudformation", region).describe_stacks()["Stacks"]
    assert [one["StackName"] for one in found if one["StackName"] != TOOLKIT] == []


def test_the_data_stays(yard: Yard, doomed: StartedJob) -> None:
    prefix = keys.JobPrefix(doomed.name)
    kept = doomed._listed(yard.places.home, prefix.root)
    assert {prefix.description, prefix.result} <= set(kept)
    table = yard.client("dynamodb").describe_table(TableName=names.state_table("trainyard"))["Table"]
    assert table["DeletionProtectionEnabled"]


def test_no_call_of_the_drain_would_be_denied(
    yard: Yard, account: DeployedAccount, policies: dict[str, Policies]
) -> None:
    roles = {role for role in policies if any(name in role for name in DRAIN)}
    verdicts = judge([call for call in list(yard.aws.recorder.calls) if call.role in roles], policies, account)
    assert {one.request.principal for one in verdicts} == roles
    assert [(one.call.name, one.request, one.answer.error) for one in verdicts if not one.answer.allowed] == []
    looks = {"batch:ListJobs", "sagemaker:ListTrainingJobs", "ec2:DescribeInstances"}
    # What runs may end sooner than the drain ends it: the children of a stopped grid stop their trainings, and the cleanup of a
    # stopped execution terminates its instances.
    assert {"states:StopExecution", *looks} <= {one.call.name for one in verdicts}
