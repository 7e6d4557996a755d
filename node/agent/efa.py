"""Says in the node's log whether the machine has the EFA devices with which it was launched."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from agent.metadata import Metadata
from contract.jobs import Job

DEVICES = "sys/class/infiniband"
"""A folder for each device of the kernel's RDMA drivers, of which EFA's is the only one on EC2."""
LOADS_S = 30.0
"""How long a driver may take; on every machine it was loaded long before user data."""
LOOK_S = 2.0


def check_devices(
    root: Path, job: Job, metadata: Metadata, note: Callable[[str], None], pause: Callable[[float], None] = time.sleep
) -> str:
    """Returns what is wrong with a machine that shows some of its devices and lacks others, which no image causes; empty for any other.

    Asks and says nothing for a job without EFA. A machine without a device trains all the same, over TCP, unless its health check keeps it
    from that: slower, and no worse than without EFA. Which of the two a library uses is its own choice (NCCL_DEBUG=INFO shows NCCL's)."""
    if not job.interfaces:
        return ""
    try:
        wanted = job.efas_of(metadata.patient("instance-type", pause))
    except OSError as problem:
        note(f"EFA: the metadata service does not tell the instance type: {problem}")
        return ""
    if not wanted:
        return ""
    for _ in range(round(LOADS_S / LOOK_S)):
        if _count(root) >= wanted:
            break
        pause(LOOK_S)
    found = _count(root)
    if found >= wanted:
        note(f"EFA: the machine has {found} devices")
        return ""
    if found:
        lacking = f"it shows {found} of the {wanted} EFA devices with which it was launched"
        note(f"EFA: {lacking}")
    else:
        lacking = ""
        note(
            f"EFA: the machine was launched with {wanted} devices and shows {found}: does its image have the EFA driver?"
        )
    return lacking


def _count(root: Path) -> int:
    folder = root / DEVICES
    return sum(1 for _ in folder.iterdir()) if folder.is_dir() else 0
