"""What jobs may ask for at most: the deployment's settings, which Admit holds requests against."""

from __future__ import annotations

from dataclasses import dataclass

from contract.health import NETWORK_SHARE
from contract.volumes import LEAST_IOPS, LEAST_THROUGHPUT


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a deployment allows its jobs."""

    max_nodes: int
    max_hours: float
    recoveries: int
    volume_gb: int
    """GiB of a node's disk where the request names none; more where the image and the code need more."""
    max_volume_gb: int
    instance_types: tuple[str, ...]
    """The instance types that requests may name, as patterns with `*` such as `g5.*`."""
    volume_iops: int = LEAST_IOPS
    """IOPS of each node's gp3 disk: 3,000 cost nothing extra. A disk takes at most 500 for each GiB; a smaller one gets what it takes."""
    volume_throughput: int = LEAST_THROUGHPUT
    """MiB/s of each node's gp3 disk: 125 cost nothing extra. At most a quarter of `volume_iops`."""
    leave_on_rebalance: bool = False
    """Whether a spot job leaves its nodes when EC2 recommends it, once the attempt has committed a checkpoint."""
    max_wait_hours: float = 336.0
    """The most hours that a job may wait for capacity, all of its attempts together."""
    network_share: float = NETWORK_SHARE
    """The least share of the network's rate that an all-reduce has to reach with `health: deep`; with 0 it only has to complete."""
