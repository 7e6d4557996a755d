"""The agent's clients of AWS: which services' models travel with it, and how long a call may take."""

from __future__ import annotations

import io
import json
import re
import time
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSRequest, AWSResponse

from agent.aws import Aws
from agent.credentials import JobCredentials
from agent.engine.moving import prepare
from agent.work import read_gbps
from contract import items
from tests.builders import JOB, NOW
from tests.node.table import NAME, ROLE
from tests.node.world import KEYS, REGION

NODE = Path(__file__).parents[2] / "node"
INSTANCE = "i-0123456789abcdef0"


class Body(io.BytesIO):
    """As urllib3 gives it."""

    def stream(self) -> list[bytes]:
        return [self.read()]


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Aws:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"):
        monkeypatch.delenv(name, raising=False)
    made = Aws()
    made.use(JobCredentials(KEYS, lambda: KEYS, now=time.time))
    return made


def test_the_models_of_the_services_that_the_agent_calls_travel_with_it_and_no_others() -> None:
    source = "".join(file.read_text() for file in NODE.glob("agent/**/*.py"))
    called = set(re.findall(r'client\("(\w+)"', source))
    # Botocore itself needs `sts`, for credentials.
    assert {*(NODE / "services.txt").read_text().split()} == called | {"sts"}


def test_the_table_is_asked_again_soon_and_buckets_patiently(aws: Aws) -> None:
    table, bucket = (aws.client(service, REGION).meta.config for service in ("dynamodb", "s3"))
    assert (table.retries["total_max_attempts"], table.connect_timeout, table.read_timeout) == (3, 5, 5)
    assert (bucket.retries["total_max_attempts"], bucket.connect_timeout, bucket.read_timeout) == (10, 10, 60)


def test_what_a_node_asks_of_dynamodb_is_what_boto3_sends_and_reads(aws: Aws) -> None:
    sent: list[tuple[str, dict[str, Any]]] = []

    def answer(request: AWSRequest, **_: object) -> AWSResponse:
        call = request.headers["X-Amz-Target"]
        operation = (call.decode() if isinstance(call, bytes) else call).rpartition(".")[2]
        sent.append((operation, json.loads(request.body)))
        there = {"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"}
        status, told = (200, {}) if operation == "GetItem" else (400, there)
        headers = {"Date": formatdate(NOW, usegmt=True), "Content-Type": "application/x-amz-json-1.0"}
        return AWSResponse(request.url, status, headers, Body(json.dumps(told).encode()))  # type: ignore[arg-type]

    aws.client("dynamodb", REGION).meta.events.register("before-send.dynamodb", answer)
    node_items = aws.items(REGION, NAME, ROLE, INSTANCE)
    assert node_items.order() is None
    node_items.put_report(b"long " * 1000, version=3, urgent=True, expires=NOW)
    (get, asked), (put, written) = sent
    assert (get, asked["Key"]["pk"], asked["ConsistentRead"]) == ("GetItem", {"S": f"{ROLE}:{INSTANCE}"}, False)
    assert (put, written["TableName"], sorted(written["Item"])) == (
        "PutItem",
        NAME,
        ["at", "doc", "expires", "pk", "sk", "urgent", "version"],
    )
    assert NOW <= float(written["Item"]["at"]["N"]) < NOW + 100
    assert list(written["Item"]["doc"]) == ["B"]
    assert items.node_report(ROLE, INSTANCE).sort == written["Item"]["sk"]["S"]


class Answering:
    """The metadata service of a machine of one type; an empty one does not answer."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def patient(self, path: str, _pause: object) -> str:
        if not self._kind:
            raise OSError("no answer")
        assert path == "instance-type"
        return self._kind


@pytest.mark.parametrize(
    ("kind", "uplinks", "gbps"),
    [("p5", {"p5": 100.0, "g5": 2.5}, 100.0), ("p4", {"p5": 100.0}, 0.0), ("", {"p5": 100.0}, 0.0), ("", {}, 0.0)],
)
def test_a_node_knows_the_rate_of_its_own_type_or_none(kind: str, uplinks: dict[str, float], gbps: float) -> None:
    world: Any = SimpleNamespace(metadata=Answering(kind), sleep=lambda _: None)
    assert read_gbps(replace(JOB, uplinks=uplinks), world) == gbps


def test_buckets_are_reached_by_the_rate_of_the_machine(aws: Aws) -> None:
    aws.gbps = 100.0
    assert aws.store(REGION, "bytes").gbps == 100.0


def test_requests_that_helpers_send_are_signed_for_the_region(aws: Aws) -> None:
    store = aws.store(REGION, "bytes")
    prepare(store.client)
    url = store.client.generate_presigned_url(
        "put_object", Params={"Bucket": "bytes", "Key": "k", "ChecksumCRC32": "AAAAAA=="}
    )
    assert url.startswith(f"https://bytes.s3.{REGION}.amazonaws.com/k?")
    assert "X-Amz-SignedHeaders=host%3Bx-amz-checksum-crc32&" in url
