"""Calls of guarded roles are judged before they take effect, and those of others are left alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localaws.iam.guard import Guard
from localaws.iam.simulator import Policies
from localaws.recorder import Answer, Call, Session
from localaws.testing.asking import OWNER, Account

ROLE, OTHER = (f"arn:aws:iam::{OWNER}:role/{name}" for name in ("job", "function"))
OBJECTS = {
    "Effect": "Allow",
    "Action": ["s3:GetObject", "s3:PutObject"],
    "Resource": "arn:aws:s3:::b/${aws:PrincipalTag/job}/*",
}
CLUSTER = f"arn:aws:rds:eu-central-1:{OWNER}:cluster:library"
STATEMENTS = {"Effect": "Allow", "Action": "rds-data:ExecuteStatement", "Resource": CLUSTER}
LOGIN = {
    "Effect": "Allow",
    "Action": "secretsmanager:GetSecretValue",
    "Resource": f"arn:aws:secretsmanager:eu-central-1:{OWNER}:secret:reader-AbCdEf",
}
POLICIES: Policies = {"own": {"Version": "2012-10-17", "Statement": [OBJECTS, STATEMENTS, LOGIN]}}
PROTOCOLS = {"s3": "s3", "dynamodb": "json", "ec2": "ec2", "monitoring": "cbor", "rds-data": "rest-json"}


class Bare(Account):
    """Has no images, and instances without a profile."""

    def instance_profile(self, region: str, instance: str) -> str:  # noqa: ARG002
        return ""

    def image(self, region: str, image: str) -> Mapping[str, Any]:
        raise ClientError({"Error": {"Code": "InvalidAMIID.NotFound", "Message": image}}, f"DescribeImages {region}")


@pytest.fixture(scope="module")
def guard() -> Iterator[Guard]:
    made = Guard(Bare(), lambda role: POLICIES if role == ROLE else None, lambda _bucket, key: key.endswith("there"))
    yield made
    made._simulator.close()


def judged(
    guard: Guard, name: str, *, role: str = ROLE, job: str = "mine", method: str = "GET", **given: Any
) -> Answer | None:
    service, action = name.split(":")
    call = Call(
        at=0.0,
        role=role,
        by=Session(role=role, tags={"job": job} if job else {}),
        service=service,
        region="eu-central-1",
        action=action,
        parameters=given,
        protocol=PROTOCOLS[service],
    )
    return guard(call, {"REQUEST_METHOD": method})


def test_what_the_policy_allows_is_left_alone(guard: Guard) -> None:
    assert judged(guard, "s3:GetObject", Bucket="b", Key="mine/there") is None
    assert judged(guard, "s3:PutObject", Bucket="b", Key="mine/new") is None


@pytest.mark.parametrize("letter", ["\n", "\r", "\u2028", "\u2029"], ids=ascii)
def test_a_line_break_in_a_key_is_a_letter_as_any_other(guard: Guard, letter: str) -> None:
    assert judged(guard, "s3:PutObject", Bucket="b", Key=f"mine/a{letter}b") is None
    assert judged(guard, "s3:PutObject", Bucket="b", Key=f"mine{letter}/a") is not None
    assert judged(guard, "s3:PutObject", Bucket="b", Key=f"yours/a{letter}mine/b") is not None


def test_a_role_that_is_not_guarded_is_left_alone(guard: Guard) -> None:
    assert judged(guard, "s3:GetObject", role=OTHER, Bucket="b", Key="yours/there") is None


def test_another_jobs_object_is_denied_and_the_try_is_on_record(guard: Guard) -> None:
    answer = judged(guard, "s3:PutObject", Bucket="b", Key="yours/new")
    assert answer is not None
    assert (answer.status, answer.error) == (403, "AccessDenied")
    assert guard.denied[-1].parameters["Key"] == "yours/new"


def test_a_session_without_the_tag_reaches_nothing(guard: Guard) -> None:
    assert judged(guard, "s3:GetObject", job="", Bucket="b", Key="mine/there") is not None


def test_an_object_that_is_missing_is_forbidden_to_whoever_may_not_list(guard: Guard) -> None:
    for name, method, empty in (("s3:GetObject", "GET", False), ("s3:HeadObject", "HEAD", True)):
        answer = judged(guard, name, method=method, Bucket="b", Key="mine/gone")
        assert answer is not None
        assert (answer.status, answer.body == b"") == (403, empty)


def test_a_statement_takes_the_right_to_the_cluster_and_to_the_secret_that_logs_in(guard: Guard) -> None:
    given = {"resourceArn": CLUSTER, "secretArn": "reader", "sql": "select 1"}
    assert judged(guard, "rds-data:ExecuteStatement", **given) is None
    for changed in ({"secretArn": "keeper"}, {"resourceArn": CLUSTER.replace("library", "other")}):
        answer = judged(guard, "rds-data:ExecuteStatement", **{**given, **changed})
        assert answer is not None
        assert (answer.status, answer.error) == (403, "AccessDeniedException")


def test_a_transaction_that_no_policy_allows_is_not_committed(guard: Guard) -> None:
    answer = judged(guard, "rds-data:CommitTransaction", resourceArn=CLUSTER, secretArn="reader", transactionId="t")
    assert answer is not None
    assert answer.error == "AccessDeniedException"


@pytest.mark.parametrize("name", ["ec2:TerminateInstances", "dynamodb:DeleteTable", "monitoring:SomethingNew"])
def test_a_call_that_nobody_has_taught_or_allowed_is_denied(guard: Guard, name: str) -> None:
    answer = judged(guard, name, **{"InstanceId.1": "i-1", "TableName": "t"})
    assert answer is not None
    assert answer.status in (400, 403)


def test_a_launch_of_an_image_that_is_not_there_is_denied(guard: Guard) -> None:
    answer = judged(guard, "ec2:RunInstances", ImageId="ami-1", InstanceType="p5.48xlarge")
    assert answer is not None
    assert (answer.status, answer.error) == (403, "UnauthorizedOperation")
