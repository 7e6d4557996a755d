"""A slow and a failing S3: whom they meet, and what they answer; people see nothing of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from localaws.conditions import Conditions
from localaws.faults import plan_faults
from localaws.model import ACCOUNT
from localaws.moto_keys import Secret
from localaws.recorder import Session
from localaws.server import LocalAws

pytestmark = pytest.mark.rehearsal
REGION, BUCKET = "eu-central-1", "files"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/any"
ONCE = Config(retries={"total_max_attempts": 1}, read_timeout=30)
MEGABYTE = b"x" * 1_000_000


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws(Conditions(throttled=0.0, speed=10.0)) as made:
        s3 = made.client("s3", REGION)
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        s3.put_object(Bucket=BUCKET, Key="k", Body=MEGABYTE)
        for name, job in (("job-a", "a"), ("job-b", "b")):
            made.recorder.know(
                f"ASIA{name:0<16}",
                Session(role=ROLE, throttled=True, name=name, tags={"job": job}),
                Secret("secret", "token"),
            )
        yield made


def faulty(aws: LocalAws, *faults: str) -> None:
    aws.conditions = replace(aws.conditions, faults=plan_faults(*faults), faults_since=time.monotonic())


def node(aws: LocalAws, job: str = "a") -> Any:
    """S3 as a node of the job sees it."""
    session: Any = boto3.session.Session(f"ASIA{f'job-{job}':0<16}", "secret", "token", REGION)
    return session.client("s3", endpoint_url=aws.endpoint, config=ONCE)


def function(aws: LocalAws) -> Any:
    return aws.client("s3", REGION, role=ROLE, config=ONCE)


def get(s3: Any) -> bytes:
    body: bytes = s3.get_object(Bucket=BUCKET, Key="k")["Body"].read()
    return body


def put(s3: Any) -> None:
    s3.put_object(Bucket=BUCKET, Key="new", Body=MEGABYTE)


def refusal(ask: Callable[[Any], object], s3: Any) -> tuple[str, int]:
    with pytest.raises(ClientError) as refused:
        ask(s3)
    answer: Any = refused.value.response
    return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]


def took(ask: Callable[[Any], object], s3: Any) -> float:
    began = time.monotonic()
    ask(s3)
    return time.monotonic() - began


@pytest.mark.parametrize(
    ("what", "told"),
    [("slow-down", ("SlowDown", 503)), ("internal-error", ("InternalError", 500)), ("denied", ("AccessDenied", 403))],
)
@pytest.mark.parametrize("ask", [get, put])
def test_a_failing_s3_answers_nodes_in_its_own_words(
    aws: LocalAws, what: str, told: tuple[str, int], ask: Callable[[Any], object]
) -> None:
    faulty(aws, f"s3-failing:as={what}")
    assert refusal(ask, node(aws)) == told


def test_a_refused_write_has_no_effect(aws: LocalAws) -> None:
    faulty(aws, "s3-failing")
    refusal(lambda s3: s3.put_object(Bucket=BUCKET, Key="never", Body=b"x"), node(aws))
    assert [
        one["Key"]
        for one in aws.client("s3", REGION).list_objects_v2(Bucket=BUCKET, Prefix="never").get("Contents", [])
    ] == []


@pytest.mark.parametrize("fault", ["s3-failing", "s3-failing:who=all", "s3-slow:each=100", "s3-slow:who=all,each=100"])
def test_a_person_sees_nothing_of_it(aws: LocalAws, fault: str) -> None:
    faulty(aws, fault)
    assert took(get, aws.client("s3", REGION)) < 5


@pytest.mark.parametrize(
    ("fault", "nodes", "functions"),
    [
        ("who=nodes", True, False),
        ("who=functions", False, True),
        ("who=all", True, True),
        ("job=a", True, False),
        ("job=b", False, False),
    ],
)
def test_it_meets_whom_it_names(aws: LocalAws, fault: str, nodes: bool, functions: bool) -> None:
    faulty(aws, f"s3-failing:{fault}")
    for s3, meets in ((node(aws), nodes), (function(aws), functions)):
        if meets:
            assert refusal(get, s3)[0] == "SlowDown"
        else:
            assert get(s3) == MEGABYTE


def test_only_what_reads_or_only_what_writes_can_fail(aws: LocalAws) -> None:
    faulty(aws, "s3-failing:calls=writes")
    assert get(node(aws)) == MEGABYTE
    refusal(put, node(aws))
    faulty(aws, "s3-failing:calls=reads")
    put(node(aws))
    refusal(get, node(aws))
    refusal(lambda s3: s3.list_objects_v2(Bucket=BUCKET), node(aws))


def test_only_keys_with_a_part_can_fail(aws: LocalAws) -> None:
    faulty(aws, "s3-failing:part=ne")
    assert get(node(aws)) == MEGABYTE
    refusal(put, node(aws))
    refusal(lambda s3: s3.list_objects_v2(Bucket=BUCKET, Prefix="new"), node(aws))
    node(aws).list_objects_v2(Bucket=BUCKET, Prefix="k")


def test_a_share_is_a_share(aws: LocalAws) -> None:
    faulty(aws, "s3-failing:share=0.5")
    s3, refused = node(aws), 0
    for _ in range(60):
        try:
            s3.head_object(Bucket=BUCKET, Key="k")
        except ClientError:
            refused += 1
    assert 15 <= refused <= 45


def test_it_is_over_when_its_time_is(aws: LocalAws) -> None:
    """A minute after the beginning are ten of an account."""
    aws.conditions = replace(
        aws.conditions, faults=plan_faults("s3-failing:seconds=500"), faults_since=time.monotonic() - 60
    )
    assert get(node(aws)) == MEGABYTE
    aws.conditions = replace(aws.conditions, faults=plan_faults("s3-failing:seconds=100000"))
    refusal(get, node(aws))


def test_a_fault_that_began_later_lasts_from_then(aws: LocalAws) -> None:
    (fault,) = plan_faults("s3-failing:seconds=900")
    long_ago = time.monotonic() - 100
    aws.conditions = replace(aws.conditions, faults=(fault,), faults_since=long_ago)
    assert get(node(aws)) == MEGABYTE
    aws.conditions = replace(aws.conditions, faults=(replace(fault, since=time.monotonic()),))
    refusal(get, node(aws))


@pytest.mark.parametrize("ask", [get, put])
def test_a_slow_answer_comes_so_much_later(aws: LocalAws, ask: Callable[[Any], object]) -> None:
    faulty(aws, "s3-slow:each=8")
    assert took(ask, node(aws)) >= 0.8
    assert took(ask, node(aws, "b")) >= 0.8


@pytest.mark.parametrize("ask", [get, put])
def test_a_slow_connection_takes_as_long_as_its_bytes(aws: LocalAws, ask: Callable[[Any], object]) -> None:
    faulty(aws, "s3-slow:each=0,rate=0.1")
    assert took(ask, node(aws)) >= 1.0


def test_a_head_is_not_as_long_as_its_object(aws: LocalAws) -> None:
    faulty(aws, "s3-slow:each=0,rate=0.01")
    assert took(lambda s3: s3.head_object(Bucket=BUCKET, Key="k"), node(aws)) < 5


def test_slow_and_failing_go_together(aws: LocalAws) -> None:
    faulty(aws, "s3-slow:each=8", "s3-failing:as=denied")
    began = time.monotonic()
    assert refusal(get, node(aws))[0] == "AccessDenied"
    assert time.monotonic() - began >= 0.8
