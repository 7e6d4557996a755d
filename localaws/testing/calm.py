"""Conditions under which nothing is lost, clients that ask once, and the ends of executions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from localaws.conditions import Conditions
from localaws.server import LocalAws
from localaws.surroundings import open_session
from localaws.testing.waiting import until

CALM = Conditions(
    speed=120.0,
    event_delay_s=(0.0, 6.0),
    clock_delay_s=(0.0, 6.0),
    events_lost=0.0,
    events_doubled=0.0,
    throttled=0.0,
    page_size=50,
)
"""Nothing lost, nothing doubled: what is tested is what arrives."""


@contextmanager
def meanwhile(aws: LocalAws, **changes: Any) -> Iterator[None]:
    """Gives the account other conditions for as long as the block lasts."""
    before = aws.conditions
    aws.conditions = replace(before, **changes)
    try:
        yield
    finally:
        aws.conditions = before


def impatient(aws: LocalAws, role: str, service: str, region: str = "us-east-1", *, throttled: bool = True) -> Any:
    """Returns a client that asks once, as this role."""
    keys = aws.credentials_for(role, throttled=throttled)
    return open_session().client(
        service,
        region_name=region,
        endpoint_url=aws.endpoint,
        config=Config(retries={"total_max_attempts": 1}),
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret,
        aws_session_token=keys.token,
    )


def over(states: Any, execution: str) -> dict[str, Any]:
    """Returns DescribeExecution of an execution once it is over."""
    until(lambda: states.describe_execution(executionArn=execution)["status"] != "RUNNING")
    found: dict[str, Any] = states.describe_execution(executionArn=execution)
    return found


def refusal(call: Any, **arguments: Any) -> str:
    """Returns the code with which the service refuses the call."""
    with pytest.raises(ClientError) as refused:
        call(**arguments)
    return str(refused.value.response["Error"]["Code"])
