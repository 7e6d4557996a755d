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
    """The default of a request, in GiB; a request without it gets more where the image and the code need more."""
    max_volume_gb: int
    instance_types: tuple[str, ...]
    """Patterns with `*`, as in `g5.*`."""
    volume_iops: int = LEAST_IOPS
    """IOPS of each node's gp3 disk: 3,000 cost nothing extra. A disk takes at most 500 for each GiB; a smaller one gets what it takes."""
    volume_throughput: int = LEAST_THROUGHPUT
    """MiB/s of each node's gp3 disk: 125 cost nothing extra. At most a quarter of `volume_iops`."""
    leave_on_rebalance: bool = False
    """Whether a spot job leaves its nodes when EC2 recommends it, once the attempt has committed a checkpoint."""
    max_wait_hours: float = 336.0
    """The most hours that a job may wait for capacity, all of its attempts together."""
    network_share: float = NETWORK_SHARE
    """The least part of its network's rate that `health: deep` wants of an all-reduce; with 0 it only has to come to its end."""
