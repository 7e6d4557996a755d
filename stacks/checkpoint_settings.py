"""The settings of the alarms about checkpoints."""

from __future__ import annotations

from pydantic import Field
from pydantic.dataclasses import dataclass

from contract.environments import CheckpointLimits
from stacks.blocks import CLOSED


@dataclass(config=CLOSED, frozen=True, kw_only=True)
class CheckpointSettings(CheckpointLimits):
    """When the alarms about checkpoints of jobs that train begin, in intervals: the job's own checkpoint_minutes."""

    oldest: float = Field(default=3.0, ge=2, le=10_000)
    """How old the newest checkpoint may become, or how long a job may train before its first (`checkpoints-old`). At least 2: one that is
    saved just after its time comes nearly two intervals after the one before."""
    longest_commit: float = Field(default=1.0, gt=0, le=10_000)
    """How long a commit may take (`commits-slow`)."""
