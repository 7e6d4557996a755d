"""One commit or one restore by the agent's engine, as a process of its own: `python -m benchmarks.checkpoints.ours WHAT FOLDER LIST`.

Prints what the engine took, from the call to its return, in a process that has its client already, as an agent has.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import sys
import time
from pathlib import Path

BARE_MB = 0.0


def memory_mb(what: str) -> float:
    """`VmRSS` now, `VmHWM` at most."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{what}:")]
    return int(line.split()[1]) * 1024 / 1e6


BARE_MB = memory_mb("VmRSS")
"""Of the interpreter alone."""


def cpu_s() -> float:
    """Of this process, and of its helpers once they have ended."""
    own, helpers = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + helpers.ru_utime + helpers.ru_stime


def main() -> None:
    import boto3
    from botocore.config import Config

    from agent.engine.engine import Engine
    from agent.engine.helpers import Crowd
    from agent.engine.places import Memory
    from agent.snapshot import list_files
    from agent.store import Store

    what, folder, listing = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    retries = Config(retries={"mode": "standard", "total_max_attempts": 10})
    client = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"], config=retries)
    store = Store(client, "bench", authorities=os.environ["AWS_CA_BUNDLE"])
    count = int(os.environ.get("BENCH_HELPERS", "0"))
    engine = Engine(store, choose=lambda *_: Crowd(count, 8)) if count else Engine(store)
    assert list(store.keys("nothing")) == []
    began, cpu = time.monotonic(), cpu_s()
    if what == "commit":
        sent = engine.send(
            folder,
            list(list_files(folder, print).values()),
            Memory(),
            pack_key=lambda digest: f"packs/{digest}",
            file_key=lambda name, path: f"files/{name}/{path}",
        )
        took, used = time.monotonic() - began, cpu_s() - cpu
        listing.write_bytes(pickle.dumps(list(sent.values())))
    else:
        files = pickle.loads(listing.read_bytes())
        began, cpu = time.monotonic(), cpu_s()
        engine.fetch(files, folder)
        took, used = time.monotonic() - began, cpu_s() - cpu
    helper_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6
    peak = {"peak_mb": memory_mb("VmHWM"), "bare_mb": BARE_MB, "helper_mb": helper_mb}
    print(json.dumps({"seconds": took, "cpu_s": used, **peak}))


if __name__ == "__main__":
    main()
