"""`make bench-rehearsal`: a warm `make rehearse`, part by part, with the processor time of all its processes.

`python -m benchmarks.rehearsal [ROUNDS]` prints a table; ends with 1 where a bound is not met.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.rehearsal.results import BOUNDS, Round, broken, rows

ROOT = Path(__file__).resolve().parents[2]
LATEST = ROOT / "rehearsal" / "out" / "latest"
EXAMPLE = "examples/ddp_digits"
COMMAND = [sys.executable, "-m", "rehearsal", "--job", f"{EXAMPLE}/job.json", "--code", EXAMPLE, "--nodes", "2"]
ROUNDS = 3


def main(given: Sequence[str]) -> int:
    rounds = int(given[0]) if given else ROUNDS
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    print("A run first that is not counted: it makes the assembly and the byte code.", flush=True)
    once(variables)
    found = [once(variables) for _ in range(rounds)]
    print(
        f"\nPython {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {rounds} runs\n"
    )
    for row in rows(found):
        print(row)
    problems = broken(found)
    for problem in problems:
        print(problem)
    print(f"\nbounds: {', '.join(f'{name} {bound:g} s' for name, bound in BOUNDS.items())}")
    return 1 if problems else 0


def once(variables: Mapping[str, str]) -> Round:
    """One rehearsal. Raises CalledProcessError, with what it printed, where it fails."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(COMMAND, cwd=ROOT, env=dict(variables), check=True)
    took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    document: dict[str, Any] = json.loads((LATEST / "parts.json").read_text())
    waited = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Round(
        whole_s=took,
        cpu_s=waited,
        parts={part["name"]: (part["began_s"], part["took_s"]) for part in document["parts"]},
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
