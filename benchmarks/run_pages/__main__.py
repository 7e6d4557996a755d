"""`make bench-pages`: the milliseconds and bytes of each kind of page, into docs/benchmarks/pages.md; ends with 1 above 500 kB or 2 s.

The facts are in memory: what it takes to read them is not in it.
"""

from __future__ import annotations

import gzip
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

from benchmarks.pages import ROOT, write_page
from pages.grid import write_grid
from pages.job import write_job
from pages.search import write_search
from tests.fakes.pages.samples import GRIDS, JOBS, SEARCHES

PAGE = ROOT / "docs" / "benchmarks" / "pages.md"
ROUNDS, MOST_BYTES, MOST_MS = 9, 500_000, 2000.0
WHAT = {
    "success": "a job that ended well",
    "failure": "a job whose code failed",
    "three-interruptions": "a job with three interruptions",
    "capped": "a job whose money is used up",
    "running": "a job that trains",
    "waiting": "a job that waits for capacity",
    "refused": "a job that was refused",
    "huge": "512 nodes, 100 attempts, 1,000 checkpoints, output of 500 lines of 5,000 characters",
    "grid": "a grid of 10,000 lines",
    "grid-running": "a grid of 400 lines that runs",
    "grid-refused": "a grid that was refused",
    "search": "a search of 60 trials",
    "search-running": "a search that runs",
    "search-failed": "a search that failed",
    "search-of-5000": "a search of 5,000 trials",
}


def main() -> int:
    measured = [
        *(measure(name, partial(write_job, make())) for name, make in JOBS.items()),
        *(measure(name, partial(write_grid, make())) for name, make in GRIDS.items()),
        *(measure(name, partial(write_search, make())) for name, make in SEARCHES.items()),
    ]
    write_page(PAGE, write_text(measured))
    print(PAGE.read_text("utf-8"))
    return 0 if all(ms <= MOST_MS and size <= MOST_BYTES for _, ms, size, _ in measured) else 1


def measure(name: str, write: Callable[[], bytes]) -> tuple[str, float, int, int]:
    """Returns the name, the median of milliseconds, and the bytes of a page, as they are and compressed. The first round is not counted."""
    times, body = list[float](), write()
    for _ in range(ROUNDS):
        began = time.perf_counter()
        body = write()
        times.append(1000 * (time.perf_counter() - began))
    return name, statistics.median(times), len(body), len(gzip.compress(body))


def write_text(measured: list[tuple[str, float, int, int]]) -> str:
    rows = "\n".join(
        f"| {WHAT[name]} | {ms:.1f} | {size / 1000:.0f} | {small / 1000:.0f} |" for name, ms, size, small in measured
    )
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d')}"
    return f"""# Pages of runs

Written by `make bench-pages`, on {machine}.

What writing a page takes once its facts are read, the median of {ROUNDS} times after one that is not counted, and how large it is. The
bounds are {MOST_MS / 1000:g} s and {MOST_BYTES // 1000} kB.

| page of | ms | kB | kB with gzip |
|---|---|---|---|
{rows}
"""


if __name__ == "__main__":
    sys.exit(main())
