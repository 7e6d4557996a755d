"""`make bench-submission`: from the start of a process to an accepted CreateTrainingJob, the grid's child beside the SageMaker SDK.

`python -m benchmarks.submission [ROUNDS]` writes docs/benchmarks/submission.md; ends with 1 where a bound is not met.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.measured import measured
from benchmarks.pages import write_page
from benchmarks.served import ROOT, Served, served, variables
from benchmarks.submission.results import CHILD, HEAD, SDK, Run, broken, differences, rows

PYTHON = {CHILD: ROOT / "build/child-env/bin/python", SDK: ROOT / "build/sagemaker-sdk/bin/python"}
PAGE = ROOT / "docs" / "benchmarks" / "submission.md"
ROUNDS, LEAST_ROUNDS = 15, 9
RACES = {"at once": 0, "20 ms late": 20}
"""How the server answers, and how many milliseconds late it does; the bounds are of the first."""
VERSIONS = """
import importlib.metadata as m, platform
names = [f"{name} {m.version(name)}" for name in ("boto3", "sagemaker") if any(m.distributions(name=name))]
print(f"Python {platform.python_version()}", *names, sep=", ")
"""
ABOUT = """# The grid's child beside the SageMaker Python SDK

Written by `make bench-submission`. Time from the start of a process to the moment at which a local server has accepted its
CreateTrainingJob, and the largest resident set of the process' whole life (`ru_maxrss`). The child is `python -m grid_child` with
the real boto3, in an environment as its image has it, and reads its line from a plan of 100 lines that Plan's own code wrote; the
other process imports `sagemaker.estimator` and calls `Estimator(...).fit(wait=False)` with the same image, role, inputs,
hyperparameters, metrics and tags. Version 3 of the SDK has no Estimator any more: this is the newest version that has one.

The two run in turn, and change places every round; byte code is compiled before, and a first run of each is not counted. Every
CreateTrainingJob was checked against botocore's model of SageMaker, and both send the same, but for switches that are off, which
the SDK leaves out, and a profiler that is off, which it says.
"""
NOT_MEASURED = """
Not measured: the real network, TLS and SageMaker's own time, which are the same for both but for the number of calls (the rows
with late answers show what calls cost: the child reads its plan from S3 first, and whether its grid was stopped); the start of a
container and the pull of its image; credentials of a role, which both would ask the container for; the pace that a grid keeps, for
which a child may wait before it submits (the line's turn is past here); many children at once; a quarter of a vCPU, which is what
a child has in AWS; version 3 of the SDK. The SDK's telemetry, after the submission, is on as it is by default, but meets a proxy
that refuses it.
"""


def of_both(at: Served, region: str, work: Path) -> dict[str, str]:
    """Nobody's settings are found, and nothing leaves the machine."""
    return variables(at.endpoint, region) | {
        "HOME": str(work),
        "HTTPS_PROXY": at.endpoint,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }


def laid_out(work: Path) -> None:
    """The child's code as its image has it, the SDK's program, and the byte code of both."""
    for package in ("contract", "grid_child"):
        others = shutil.ignore_patterns("__pycache__", "Dockerfile", "requirements.*")
        shutil.copytree(ROOT / package, work / package, ignore=others)
    shutil.copy(ROOT / "benchmarks" / "submission" / "estimator.py", work)
    for python in PYTHON.values():
        subprocess.run([python, "-m", "compileall", "-q", "contract", "grid_child"], cwd=work, check=True)


def run(name: str, at: Served, late_ms: float, work: Path) -> Run:
    """One process, to its end. Raises AssertionError where it did not submit what is wanted, measured.Failed where it failed."""
    told = at.fetch_json(
        f"/begin/{late_ms}"
    )  # a new account; the request that is wanted, the child's environment, the region
    common = of_both(at, told["region"], work)
    if name == CHILD:
        child = measured([str(PYTHON[name]), "-m", "grid_child"], variables=common | told["variables"], work=work)
    else:
        (work / "request.json").write_text(json.dumps(told["wanted"]))
        child = measured([str(PYTHON[name]), "estimator.py", "request.json"], variables=common, work=work)
    seen = at.fetch_json("/seen")
    assert seen["request"], f"{name} submitted nothing: {seen['calls']}"
    problems = differences(seen["request"], told["wanted"])
    assert not problems, f"{name}: {'; '.join(problems)}"
    own_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    assert child.peak_mb > own_mb, f"{name}: {child.peak_mb:.0f} MB may be this process' own {own_mb:.0f} MB"
    return Run(seen["accepted"] - child.began, child.peak_mb, seen["before"])


def race(late_ms: float, rounds: int) -> dict[str, list[Run]]:
    """Both in turn, `rounds` times, after a first run of each that does not count."""
    runs: dict[str, list[Run]] = {CHILD: [], SDK: []}
    with served("benchmarks.submission.server") as at, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        work = Path(folder)
        laid_out(work)
        for number in range(rounds + 1):
            for name in (CHILD, SDK) if number % 2 else (SDK, CHILD):
                one = run(name, at, late_ms, work)
                if number:
                    runs[name].append(one)
                what = "" if number else ", not counted"
                print(f"  {name:22} {one.seconds:7.3f} s {one.peak_mb:6.0f} MB{what}", flush=True)
    return runs


def versions(python: Path) -> str:
    return subprocess.run([python, "-c", VERSIONS], capture_output=True, text=True, check=True).stdout.strip()


def load() -> str:
    """Of the last minute, the last five and the last fifteen."""
    return ", ".join(f"{one:.1f}" for one in os.getloadavg())


def page(found: Mapping[str, Mapping[str, list[Run]]], rounds: int, before: str) -> str:
    of = "; ".join(f"{name}: {versions(python)}" for name, python in PYTHON.items())
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, load {before} at the start and {load()} at the end"
    facts = f"{rounds} rounds; {machine}. {of[0].upper()}{of[1:]}."
    table = [*HEAD, *(row for answers, runs in found.items() for row in rows(answers, runs))]
    return "\n".join([ABOUT, facts, "", *table]) + "\n" + NOT_MEASURED


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    if rounds < LEAST_ROUNDS:
        sys.exit(f"{rounds} rounds are too few for a median; at least {LEAST_ROUNDS}")
    before, found = load(), {}
    print(f"load {before}", flush=True)
    for answers, late_ms in RACES.items():
        print(f"answers {answers}", flush=True)
        found[answers] = race(late_ms, rounds)
    write_page(PAGE, page(found, rounds, before))
    bounded = next(iter(RACES))
    problems = broken(bounded, found[bounded])
    print(PAGE.read_text(), *problems, sep="\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
