"""Runs parts of the tests beside busy processes, and tells what failed beside how many of them.

`python -m tools.stress LOADS PART...`, LOADS as in "4 15 40". Each run's results are kept in build/stress/LOAD, as `make test` leaves
them in build/test. Nothing is run a second time: what fails here and passes in quiet is what is looked for.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.summary import Part, read, write_screens

RESULTS, KEPT = Path("build/test"), Path("build/stress")
LANES = 3
BUSY = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): sum(range(100_000))"
"""Ends by itself once the process with that id is gone, which would end it."""
LEAST_PRIORITY = 19
"""Niceness of the busy processes, as of whatever else a developer's machine does beside the tests."""


@dataclass(frozen=True, slots=True)
class Run:
    """The parts beside so many busy processes."""

    load: int
    minutes: float
    average: float
    """The system's load average of the last minute, at the end."""
    parts: Sequence[Part]

    @property
    def failed(self) -> list[str]:
        """Tests that failed, and parts that did not end as tests do."""
        tests = [test for part in self.parts for test in part.failed]
        return tests + [part.name for part in self.parts if not part.is_good and not part.failed]


@contextmanager
def keep_busy(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Uses the processors with so many processes, which end with the block."""
    command = ["nice", "-n", str(LEAST_PRIORITY), sys.executable, "-c", BUSY, str(os.getpid())]
    started = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield started
    finally:
        for one in started:
            one.kill()
        for one in started:
            one.wait()


def run_beside(load: int, names: Sequence[str]) -> Run:
    """Runs the parts once, in lanes, and keeps their results."""
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir(parents=True)
    begun = time.monotonic()
    with keep_busy(load):
        make = ["make", "--no-print-directory", "-k", f"-j{LANES}", "SIDE_BY_SIDE=1"]
        subprocess.run([*make, f"PYTHON={sys.executable}", *names], check=False)
        minutes, average = (time.monotonic() - begun) / 60, os.getloadavg()[0]
    shutil.rmtree(KEPT / str(load), ignore_errors=True)
    shutil.copytree(RESULTS, KEPT / str(load))
    return Run(load, minutes, average, [read(KEPT / str(load), name) for name in names])


def write_table(runs: Sequence[Run]) -> Iterator[str]:
    """Yields a row for each run, and a line for each test that failed in one, with the loads beside which it did."""
    yield "busy processes  load average  minutes  passed  failed"
    for run in runs:
        passed = sum(part.passed for part in run.parts)
        yield f"{run.load:14}  {run.average:12.1f}  {run.minutes:7.1f}  {passed:6,}  {len(run.failed):6}"
    for test in dict.fromkeys(test for run in runs for test in run.failed):
        loads = ", ".join(str(run.load) for run in runs if test in run.failed)
        yield f"FAILED beside {loads}: {test}"


def main(arguments: Sequence[str]) -> int:
    loads, *names = arguments
    runs = list[Run]()
    for load in map(int, loads.split()):
        print(f"Beside {load} busy processes: {', '.join(names)} ...", flush=True)
        runs.append(run_beside(load, names))
        print(*write_screens(KEPT / str(load), runs[-1].parts), sep="\n", flush=True)
    print("", *write_table(runs), sep="\n", flush=True)
    return int(any(run.failed for run in runs))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
