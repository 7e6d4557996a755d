"""Waits until the node is told where the master is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from agent.failures import MachineTrouble
from agent.metadata import Metadata
from contract.timing import Timing


def wait_for_master(
    metadata: Metadata, timing: Timing, *, now: Callable[[], float], pause: Callable[[float], None]
) -> str:
    """Returns the master's address. Raises MachineTrouble where it does not come within `meet_allowance_s`."""
    until = now() + timing.meet_allowance_s
    while now() < until:
        with suppress(OSError):
            if address := metadata.master_address():
                return address
        pause(timing.metadata_every_s)
    raise MachineTrouble(f"the master address did not come within {timing.meet_allowance_s:.0f} s")
