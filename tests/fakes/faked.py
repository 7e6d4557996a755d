"""A fake of AWS to ask, and short ways to ask it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import boto3
import botocore.endpoint
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from launcher.arguments import LaunchMarks, build_arguments
from tests.builders import JOB, rung
from tests.fakes.aws import Aws
from tests.fakes.functions import PROFILE
from tests.fakes.yard import deployed

ONCE = Config(retries={"mode": "standard", "total_max_attempts": 1})
BUCKET = JOB.home_bucket


@contextmanager
def connected() -> Iterator[Aws]:
    """A deployment on the fake, behind the clients below and `boto3.client`."""
    fake = deployed()
    with fake.connected(), mock.patch.object(botocore.endpoint, "time", fake.clock):
        yield fake


def ec2() -> Any:
    return boto3.client("ec2", config=ONCE)


def s3() -> Any:
    return boto3.client("s3", config=ONCE)


def refused(call: Any, **arguments: Any) -> str:
    """The code with which the service says no."""
    with pytest.raises(ClientError) as problem:
        call(**arguments)
    return str(problem.value.response["Error"]["Code"])


def launch(token: str = "one", *, nodes: int = 2, **changes: Any) -> list[dict[str, Any]]:
    """The launcher's own request; its instances, as RunInstances shows them."""
    wanted = build_arguments(
        JOB, 1, rung(), group="group-a-0", security_group="sg-1", marks=LaunchMarks(profile=PROFILE)
    ) | {
        "MinCount": nodes,
        "MaxCount": nodes,
    }
    answer = ec2().run_instances(**(wanted | {"ClientToken": token} | changes))
    return list(answer["Instances"])


def ids(instances: list[dict[str, Any]]) -> list[str]:
    return [one["InstanceId"] for one in instances]
