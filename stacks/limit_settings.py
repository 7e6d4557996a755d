"""Settings of what a request for a job may ask for."""

from __future__ import annotations

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from contract.health import NETWORK_SHARE
from contract.limits import Limits
from contract.volumes import IOPS_PER_MIB, LEAST_IOPS, LEAST_THROUGHPUT, MOST_IOPS, MOST_THROUGHPUT, most_throughput
from stacks.blocks import CLOSED, LONGEST_TRAINING_H
from stacks.forms import InstanceTypes

LONGEST_WAIT_H = 24 * 28
"""The most hours that jobs may be allowed to wait for capacity: what was pinned at admission ages, such as images."""


@dataclass(config=CLOSED, frozen=True, kw_only=True)
class LimitSettings(Limits):
    """What a request for a job may ask for."""

    max_nodes: int = Field(default=16, ge=1, le=1000)
    """The most nodes of a job."""
    max_hours: float = Field(default=72.0, gt=0, le=LONGEST_TRAINING_H)
    """The most hours of a job, all of its attempts together."""
    max_wait_hours: float = Field(default=336.0, ge=0, le=LONGEST_WAIT_H)
    network_share: float = Field(default=NETWORK_SHARE, ge=0, le=0.8)
    recoveries: int = Field(default=3, ge=0, le=100)
    """The most recoveries in a row after lost nodes, each from the newest checkpoint; a newer checkpoint resets the count."""
    volume_gb: int = Field(default=200, ge=8, le=65536)
    max_volume_gb: int = Field(default=2000, ge=8, le=65536)
    """The largest disk that a request may ask for."""
    volume_iops: int = Field(default=LEAST_IOPS, ge=LEAST_IOPS, le=MOST_IOPS)
    volume_throughput: int = Field(default=LEAST_THROUGHPUT, ge=LEAST_THROUGHPUT, le=MOST_THROUGHPUT)
    instance_types: tuple[InstanceTypes, ...] = Field(default=("*",), min_length=1)

    @model_validator(mode="after")
    def _agrees(self) -> LimitSettings:
        if self.volume_throughput > (most := most_throughput(self.volume_iops)):
            raise ValueError(
                f"volume_throughput is {self.volume_throughput}, and volume_iops is {self.volume_iops}; allowed: at most {most}, a "
                f"quarter of volume_iops, or volume_iops of at least {IOPS_PER_MIB * self.volume_throughput}"
            )
        if self.volume_gb > self.max_volume_gb:
            raise ValueError(f"volume_gb is {self.volume_gb}, more than max_volume_gb, which is {self.max_volume_gb}")
        return self
