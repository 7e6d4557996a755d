"""Settings of the deployments that conftest.py synthesises, for tests to compare with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.builders import GRID_LIMITS

SPEED = 20.0
MOST_GRID = replace(GRID_LIMITS, max_lines=100_000, max_concurrent=1, max_hours=672.0)
FAST_DISKS = {"volume_iops": 4_000, "volume_throughput": 1_000}
RESERVED = 5
"""Invocations at once."""
AGAIN_SOON: dict[str, Any] = {"terminate_again_s": 60}
