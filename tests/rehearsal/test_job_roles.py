"""Jobs whose training has a role of its own: it reads what only that role may, and a role that nobody can assume ends its job in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import boto3
import pytest

from contract import names
from contract.errors import RoleRefused
from localaws.conditions import Conditions
from rehearsal.deployment import ACCOUNT
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import ONE, failed, instances, succeeded, train

pytestmark = [pytest.mark.rehearsal, pytest.mark.faults]
ROLES = {name: f"arn:aws:iam::{ACCOUNT}:role/{name}" for name in ("corpus", "nobody")}
BUCKET, READER, STRANGER = "corpus-of-all-jobs", "reader", "stranger"


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    work = tmp_path_factory.mktemp("roles") / "work"
    with Yard(work, Conditions(speed=10.0), settings={"job_roles": ROLES}, wanted=["workflow"]) as yard:
        yield yard


@pytest.fixture(scope="module")
def jobs(deployed: Yard) -> dict[str, StartedJob]:
    """Makes, as an administrator, a bucket and a role with the trust policy of docs/guides/job-roles.md. There is no role `nobody`."""
    (outputs,) = deployed.client("cloudformation").describe_stacks(StackName=names.workflow_stack("trainyard"))[
        "Stacks"
    ]
    (attendant,) = (one["OutputValue"] for one in outputs["Outputs"] if one["OutputKey"] == names.ATTENDANT_ROLE)
    s3, iam = deployed.client("s3"), deployed.client("iam")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": deployed.region})
    for job in (READER, STRANGER):
        s3.put_object(Bucket=BUCKET, Key=f"{job}/corpus.txt", Body=f"for {job}".encode())
    trust = {
        "Effect": "Allow",
        "Principal": {"AWS": attendant},
        "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Condition": {"StringLike": {"aws:RequestTag/job": "?*"}},
    }
    iam.create_role(RoleName="corpus", AssumeRolePolicyDocument=policy(trust))
    reads = {
        "Effect": "Allow",
        "Action": "s3:GetObject",
        "Resource": f"arn:aws:s3:::{BUCKET}/${{aws:PrincipalTag/job}}/*",
    }
    iam.put_role_policy(RoleName="corpus", PolicyName="reads", PolicyDocument=policy(reads))
    code = deployed.upload(Path(__file__).with_name("reader"), "reader")
    trainer = deployed.upload(Path(__file__).with_name("trainer"), "trainer")
    objects = [f"{job}/corpus.txt" for job in (READER, STRANGER)]
    command = ["python", "read.py", BUCKET, *objects, str(Path(boto3.__file__).parents[1])]
    refused = {**ONE, "code": trainer, "command": train(1000, 0.2), "job_role": "nobody"}
    return {
        "refused": deployed.start(refused, "refused"),
        READER: deployed.start({**ONE, "code": code, "command": command, "job_role": "corpus"}, READER),
    }


def policy(statement: Mapping[str, object]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def test_a_training_reads_what_its_role_may_for_its_job_and_nothing_else(jobs: dict[str, StartedJob]) -> None:
    succeeded(jobs[READER])
    log = jobs[READER].log(names.log_stream(READER, 1, 0))
    said = dict(line.split(": ", 1) for line in log if line.startswith(("role ", "instance ")))
    assert said == {
        f"role {READER}/corpus.txt": f"for {READER}",
        f"role {STRANGER}/corpus.txt": "AccessDenied",
        f"instance {READER}/corpus.txt": "AccessDenied",
    }


def test_what_the_guard_denied_is_what_the_training_tried(deployed: Yard, jobs: dict[str, StartedJob]) -> None:
    succeeded(jobs[READER])
    node = instances(jobs[READER])[0]["InstanceId"]
    denied = [(call.session, call.name, call.parameters.get("Key")) for call in list(deployed.guard.denied)]
    assert denied == [
        (f"{READER}.1", "s3:GetObject", f"{STRANGER}/corpus.txt"),
        (node, "s3:GetObject", f"{READER}/corpus.txt"),
    ]


def test_a_role_that_nobody_can_assume_ends_the_admission_in_words_and_starts_nothing(
    jobs: dict[str, StartedJob],
) -> None:
    cause = failed(jobs["refused"], RoleRefused.__name__)
    for words in (ROLES["nobody"], "job_roles.nobody in cdk.json", names.ATTENDANT_ROLE, "is not authorized"):
        assert words in cause
    assert jobs["refused"].states() == ["Admit", "Failed"]
    assert instances(jobs["refused"]) == []
