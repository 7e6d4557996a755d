"""Makes boto3 clients when they are first needed, because imports take most of a child's start."""

from __future__ import annotations

from functools import cache
from typing import Any

from grid_child.loading import loading

CONNECT_S = 5.0
READ_S = 10.0
"""SIGTERM gives 30 s: a call that hangs must leave time to ask Batch why."""


def client(service: str, region: str) -> Any:
    """A client without retries: the caller decides whether and when to repeat, with waits that SIGTERM interrupts."""
    with loading():
        import boto3

        return boto3.client(service, region_name=region, config=_once())  # type: ignore[call-overload]


@cache
def _once() -> Any:
    from botocore.config import Config

    retries: Any = {"mode": "standard", "total_max_attempts": 1}
    return Config(retries=retries, connect_timeout=CONNECT_S, read_timeout=READ_S)
