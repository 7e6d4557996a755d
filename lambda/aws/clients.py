"""Makes boto3 clients, once a service and region and process."""

from __future__ import annotations

from functools import cache
from typing import Any

import boto3
from botocore.config import Config

PATIENT = Config(retries={"mode": "standard", "total_max_attempts": 8}, connect_timeout=5, read_timeout=20)
ONE_ATTEMPT = Config(retries={"mode": "standard", "total_max_attempts": 1}, connect_timeout=5, read_timeout=60)
"""For RunInstances: an empty rung answers HTTP 500, and botocore would ask it five times, 7.4 s in all."""

IN_PASSING = Config(retries={"mode": "standard", "total_max_attempts": 2}, connect_timeout=2, read_timeout=5)
"""For what would be good to know: its caller has a minute for everything, and a verdict that does not wait."""

BRISK = Config(retries={"mode": "standard", "total_max_attempts": 4}, connect_timeout=3, read_timeout=15)
"""For the reaper: a region that does not answer may cost a pass about 15 s, and a service that hangs a minute."""

SIDE_BY_SIDE = Config(
    retries={"mode": "standard", "total_max_attempts": 8}, connect_timeout=5, read_timeout=20, max_pool_connections=16
)
"""PATIENT, for 16 threads that share a client."""


@cache
def client(service: str, region: str | None = None, config: Config = PATIENT) -> Any:
    """A client for `region`, the function's own region where none is given."""
    return boto3.client(service, region_name=region, config=config)  # type: ignore[call-overload]
