"""Sessions that a function begins on the local STS, asked for with a real boto3."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from localaws.moto_keys import Secret
from localaws.recorder import Session
from localaws.server import LocalAws
from localaws.testing.calm import CALM

pytestmark = [pytest.mark.rehearsal, pytest.mark.filterwarnings("ignore:Exception.STSClientError")]
HOME, KEY = "eu-central-1", "AKIAIOSFODNN7EXAMPLE"
TAGS = [{"Key": "job", "Value": "resnet"}]
Assume = Callable[..., Any]


def policy(**statement: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]})


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws(CALM) as made:
        yield made


@pytest.fixture(scope="module")
def role(aws: LocalAws) -> str:
    """Trusts a function's role, whose keys are KEY."""
    iam = aws.client("iam", HOME)
    function = policy(Principal={"Service": "lambda.amazonaws.com"}, Action="sts:AssumeRole")
    me = iam.create_role(RoleName="worker", AssumeRolePolicyDocument=function)["Role"]["Arn"]
    aws.recorder.know(KEY, Session(role=me, name="worker"), Secret("x"))
    trust = policy(
        Principal={"AWS": me},
        Action=["sts:AssumeRole", "sts:TagSession"],
        Condition={"StringLike": {"aws:RequestTag/job": "?*"}},
    )
    arn: str = iam.create_role(RoleName="corpus", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    return arn


@pytest.fixture(scope="module")
def assume(aws: LocalAws) -> Assume:
    client = boto3.client(
        "sts",
        HOME,
        aws_access_key_id=KEY,
        aws_secret_access_key="x",
        endpoint_url=aws.environment()["AWS_ENDPOINT_URL"],
    )
    return lambda arn, **given: client.assume_role(RoleArn=arn, RoleSessionName="resnet.1", **given)["Credentials"]


def refusal(assume: Assume, arn: str, **given: Any) -> str:
    with pytest.raises(ClientError) as problem:
        assume(arn, **given)
    return f"{problem.value.response['Error']['Code']}: {problem.value.response['Error']['Message']}"


def test_a_session_that_the_role_trusts_has_its_tag(aws: LocalAws, role: str, assume: Assume) -> None:
    keys = assume(role, Tags=TAGS)
    assert aws.recorder.caller(keys["AccessKeyId"]) == role


def test_a_session_without_the_tag_is_denied_in_sts_own_words(role: str, assume: Assume) -> None:
    me = role.replace("corpus", "worker")
    words = f"AccessDenied: User: {me} is not authorized to perform: sts:AssumeRole on resource: {role}"
    assert refusal(assume, role) == words


@pytest.mark.parametrize("arn", ["arn:aws:iam::123456789012:role/nobody", "arn:aws:iam::444455556666:role/corpus"])
def test_a_role_that_does_not_exist_is_denied_as_one_that_does_not_trust(arn: str, role: str, assume: Assume) -> None:
    assert arn != role
    assert refusal(assume, arn, Tags=TAGS).startswith("AccessDenied: ")


@pytest.mark.parametrize("given", [{"DurationSeconds": 3601}, {"Policy": "x" * 2049}])
def test_what_sts_takes_from_nobody_is_refused(role: str, assume: Assume, given: dict[str, Any]) -> None:
    assert refusal(assume, role, Tags=TAGS, **given).startswith("ValidationError: ")
