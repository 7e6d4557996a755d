"""Sessions that a role begins: their keys end when they say, every service refuses them from then on, and STS may be away."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ReadTimeoutError

from localaws.conditions import Conditions
from localaws.faults import plan_faults
from localaws.model import ACCOUNT
from localaws.recorder import Call, Session
from localaws.server import LocalAws
from localaws.services.sts import expired

pytestmark = pytest.mark.rehearsal
REGION, BUCKET = "eu-central-1", "files"
BEGINS, ROLE = (f"arn:aws:iam::{ACCOUNT}:role/{name}" for name in ("begins", "job"))
ONCE = Config(retries={"total_max_attempts": 1}, read_timeout=1)


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws(Conditions(throttled=0.0)) as made:
        statement = {"Effect": "Allow", "Action": ["sts:AssumeRole", "sts:TagSession"], "Principal": {"AWS": BEGINS}}
        trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        for name in ("begins", "job"):
            made.client("iam", REGION).create_role(RoleName=name, AssumeRolePolicyDocument=trust)
        made.client("s3", REGION).create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        yield made


def faulty(aws: LocalAws, *faults: str) -> None:
    aws.conditions = replace(aws.conditions, faults=plan_faults(*faults), faults_since=time.monotonic())


def begun(aws: LocalAws, job: str = "a") -> Any:
    """The keys of a session, and until when they say that they are valid."""
    sts = aws.client("sts", REGION, role=BEGINS, config=ONCE)
    tags = [{"Key": "job", "Value": job}]
    return sts.assume_role(RoleArn=ROLE, RoleSessionName="of-a-job", DurationSeconds=3600, Tags=tags)["Credentials"]


def using(aws: LocalAws, keys: Any, service: str) -> Any:
    session: Any = boto3.session.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], REGION)
    return session.client(service, endpoint_url=aws.endpoint, config=ONCE)


def refusal(ask: Callable[[], object]) -> tuple[str, int]:
    with pytest.raises(ClientError) as refused:
        ask()
    answer: Any = refused.value.response
    return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]


CALLS: dict[str, tuple[str, Callable[[Any], object], tuple[str, int]]] = {
    "an object": ("s3", lambda s3: s3.get_object(Bucket=BUCKET, Key="k"), ("ExpiredToken", 400)),
    "an upload": ("s3", lambda s3: s3.put_object(Bucket=BUCKET, Key="k", Body=b"x"), ("ExpiredToken", 400)),
    "an object's head, whose answer has no body": (
        "s3",
        lambda s3: s3.head_object(Bucket=BUCKET, Key="k"),
        ("400", 400),
    ),
    "a table": ("dynamodb", lambda table: table.list_tables(), ("ExpiredTokenException", 400)),
    "logs": ("logs", lambda logs: logs.describe_log_groups(), ("ExpiredTokenException", 400)),
    "a secret": (
        "secretsmanager",
        lambda secrets: secrets.get_secret_value(SecretId="x"),
        ("ExpiredTokenException", 400),
    ),
    "itself": ("sts", lambda sts: sts.get_caller_identity(), ("ExpiredToken", 403)),
    "machines": ("ec2", lambda ec2: ec2.describe_instances(), ("RequestExpired", 400)),
}


@pytest.fixture(scope="module")
def old(aws: LocalAws) -> Any:
    """Keys that were valid for a tenth of a second."""
    faulty(aws, "keys-short:seconds=0.1")
    keys = begun(aws)
    faulty(aws)
    time.sleep(max(0.0, keys["Expiration"].timestamp() - time.time()) + 0.01)
    return keys


@pytest.mark.parametrize("what", CALLS)
def test_keys_that_have_expired_are_refused_in_the_services_own_words(aws: LocalAws, old: Any, what: str) -> None:
    service, ask, answer = CALLS[what]
    assert refusal(lambda: ask(using(aws, old, service))) == answer


def test_keys_are_valid_for_as_long_as_was_asked(aws: LocalAws) -> None:
    keys = begun(aws)
    assert keys["Expiration"].timestamp() - time.time() == pytest.approx(3600, abs=60)
    assert using(aws, keys, "s3").list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0


@pytest.mark.parametrize(("ahead_s", "refused"), [(0.001, False), (0.0, True), (-5000.0, True)])
def test_the_time_of_the_call_decides_and_its_last_moment_is_too_late(ahead_s: float, refused: bool) -> None:
    by = Session(role=ROLE, until=1000.0 + ahead_s)
    call = Call(at=1000.0, role=ROLE, by=by, service="s3", region=REGION, action="GetObject", protocol="s3")
    assert (expired(call, {}) is not None) is refused


def test_only_the_jobs_keys_are_short_that_the_fault_names(aws: LocalAws) -> None:
    faulty(aws, "keys-short:seconds=20,job=a")
    lasts = {job: begun(aws, job)["Expiration"].timestamp() - time.time() for job in ("a", "b")}
    assert lasts["a"] < 21
    assert lasts["b"] > 3000
    faulty(aws)


def test_a_session_service_that_is_away_begins_none_and_keeps_those_that_it_began(aws: LocalAws) -> None:
    before = begun(aws)
    faulty(aws, "session-service-away")
    assert refusal(lambda: begun(aws)) == ("ServiceUnavailable", 503)
    assert using(aws, before, "s3").list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0
    faulty(aws)
    begun(aws)


def test_a_session_service_that_hangs_answers_nobody_in_time(aws: LocalAws) -> None:
    faulty(aws, "session-service-away:how=hangs,job=a")
    with pytest.raises(ReadTimeoutError):
        begun(aws)
    begun(aws, "b")
    faulty(aws)
