"""`python -m agent`: the real world around the node's work; the machine powers off when this returns."""

from __future__ import annotations

import os
import sys
import time
import traceback
from pathlib import Path

from agent.aws import Aws
from agent.machine import raise_limits
from agent.metadata import Metadata
from agent.work import World, say, work


def main() -> int:
    """0 when the node's work was reported, 1 when no report could be sent."""
    world = World(
        root=Path(os.environ.get("TRAINYARD_ROOT") or "/"),
        home_region=os.environ["TRAINYARD_HOME_REGION"],
        home_bucket=os.environ["TRAINYARD_HOME_BUCKET"],
        table=os.environ["TRAINYARD_TABLE"],
        role=os.environ["TRAINYARD_NODE_ROLE"],
        booted=float(os.environ.get("TRAINYARD_BOOTED") or time.time()),
        metadata=Metadata.of(os.environ),
        aws=Aws(),
        variables=dict(os.environ),
        now=time.time,
        sleep=time.sleep,
    )
    raise_limits(say)
    try:
        work(world)
    except Exception:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
