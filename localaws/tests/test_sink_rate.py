"""A server whose connections have a rate, as S3's have."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import boto3
import pytest

from localaws.sink.server import Sink

BODY, RATE = bytes(2_000_000), 5e6


@pytest.fixture
def client(tmp_path: Path) -> Any:
    sink = Sink(tmp_path, rate=RATE)
    yield boto3.client(
        "s3", region_name="eu-central-1", endpoint_url=sink.endpoint, verify=str(sink.authority), aws_access_key_id="a",
        aws_secret_access_key="b",
    )  # fmt: skip
    sink.close()


def test_no_connection_is_faster_than_its_rate(client: Any) -> None:
    client.put_object(Bucket="b", Key="k", Body=BODY)
    began = time.monotonic()
    assert client.get_object(Bucket="b", Key="k")["Body"].read() == BODY
    assert time.monotonic() - began > 0.6 * len(BODY) / RATE  # the last piece waits for none after it
