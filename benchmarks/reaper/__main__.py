"""`make bench-reaper`: the reaper's pass and Cloud Custodian, in turn, against the same server; medians into docs/benchmarks/reaper.md.

Both look for instances of the deployment that are past their deadline; the reaper judges executions as well. Neither ends anything.
Five passes of six ask for the pages of ours once; the sixth also asks by instance profile.

`python -m benchmarks.reaper [ROUNDS [INSTANCES]]`: with another number of instances than 100,000 it writes no page.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.measured import Measured, measured
from benchmarks.pages import write_page
from benchmarks.reaper.account import DEPLOYMENT, REGION
from benchmarks.served import ROOT, Served, served, variables
from contract import tags

CUSTODIAN = ROOT / "build" / "custodian" / "bin"
PAGE = ROOT / "docs" / "benchmarks" / "reaper.md"
MEMORY_MB, SHARE = 128, 8
ROUNDS, INSTANCES = 3, 100_000
TITLE = "# The reaper beside Cloud Custodian"
Runs = dict[str, list[tuple[Measured, Mapping[str, int]]]]
"""By competitor: each run, and the calls that it made by their names."""


@dataclass(frozen=True, slots=True)
class Race:
    """`filtered`: Custodian's query names our tag, so that EC2 does the filtering, as it always does for the reaper."""

    name: str
    ours: int
    strangers: int
    filtered: bool
    sixth: bool = False
    """Every sixth pass of the reaper also looks for instances that lost their tags, by their profile: all pages once more."""


def races(instances: int) -> tuple[Race, ...]:
    """Returns the races over an account of so many instances."""
    few = instances // 100
    all_ours, few_ours = f"{instances:,} instances, all ours", f"{instances:,} instances, {few:,} of them ours"
    return (
        Race(f"{all_ours}, Custodian filters at EC2", instances, 0, True),
        Race(f"{all_ours}, Custodian filters itself", instances, 0, False),
        Race("the same, the reaper's sixth pass, which looks by profile as well", instances, 0, False, sixth=True),
        Race(f"{few_ours}, Custodian filters at EC2", few, instances - few, True),
        Race(f"{few_ours}, Custodian filters itself", few, instances - few, False),
    )


def ours(at: Served, work: Path, *, sixth: bool) -> tuple[Measured, int]:
    command = [sys.executable, "-m", "benchmarks.reaper.ours", *(["sixth"] if sixth else [])]
    paths = {"AWS_REGION": REGION, "PYTHONPATH": f"{ROOT}:{ROOT / 'lambda'}"}
    run = measured(command, variables=variables(at.endpoint, REGION) | paths, work=work)
    return run, int(json.loads(run.output.splitlines()[-1])["past_deadline"])


def custodian(at: Served, work: Path, *, filtered: bool) -> tuple[Measured, int]:
    (work / "policy.json").write_text(json.dumps({"policies": [policy(filtered)]}))
    command = [str(CUSTODIAN / "custodian"), "run", "--dryrun", "--quiet", "-s", "out", "--cache-period", "0"]
    place = ["--region", REGION]
    plain = variables(at.endpoint, REGION) | {"AWS_REGION": REGION}
    run = measured([*command, *place, "policy.json"], variables=plain, work=work)
    return run, len(json.loads((work / "out" / "late" / "resources.json").read_text()))


def policy(filtered: bool) -> dict[str, Any]:
    """Instances of ours, past their deadline."""
    late = {
        "type": "value",
        "key": f"tag:{tags.DEADLINE}",
        "value_type": "integer",
        "op": "lt",
        "value": int(time.time()),
    }
    mine = {f"tag:{tags.DEPLOYMENT}": DEPLOYMENT}
    query = {"query": [mine]} if filtered else {}
    return {"name": "late", "resource": "aws.ec2", **query, "filters": [mine, late]}


def race(one: Race, rounds: int) -> Runs:
    """Each in turn, `rounds` times. Raises AssertionError where the two do not find the same."""
    runs: Runs = {"reaper": [], "custodian": []}
    account = served("benchmarks.reaper.server", str(one.ours), str(one.strangers))
    with account as at, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        (late,) = map(int, at.facts)  # instances past their deadline: what both have to find
        for _ in range(rounds):
            for name in runs:
                at.fetch_json("/counts")  # starts the counts and the throttles' buckets anew
                work = Path(folder)
                if name == "reaper":
                    run, found = ours(at, work, sixth=one.sixth)
                else:
                    run, found = custodian(at, work, filtered=one.filtered)
                assert found == late, f"{name} found {found} of {late}"
                runs[name].append((run, at.fetch_json("/counts")))
                print(f"  {name:10} {run.seconds:7.2f} s {run.peak_mb:8.0f} MB", flush=True)
    return runs


def row(one: Race, runs: Runs) -> str:
    took = {name: statistics.median(run.seconds for run, _ in many) for name, many in runs.items()}
    held = {name: max(run.peak_mb for run, _ in many) for name, many in runs.items()}
    calls = {name: sum(many[-1][1].values()) - many[-1][1].get("throttled", 0) for name, many in runs.items()}
    throttled = {name: many[-1][1].get("throttled", 0) for name, many in runs.items()}
    cells = [one.name]
    cells += [
        f"{took[name]:.1f} s, {held[name]:.0f} MB, {calls[name]} calls, {throttled[name]} throttled" for name in runs
    ]
    cells += [f"{took['custodian'] / took['reaper']:.1f} x", f"{held['custodian'] / held['reaper']:.1f} x"]
    return "| " + " | ".join(cells) + " |"


def main(given: Sequence[str]) -> int:
    rounds, instances = (*map(int, given), *(ROUNDS, INSTANCES)[len(given) :])
    peer = subprocess.run([str(CUSTODIAN / "custodian"), "version"], capture_output=True, text=True, check=True).stdout
    versions = f"Python {platform.python_version()}, boto3 {version('boto3')}, Cloud Custodian {peer.strip()}"
    lines = [
        *(TITLE, "", __doc__ or "", ""),
        f"{rounds} rounds, medians of time, peaks of memory; {platform.machine()}, {os.cpu_count()} cores, {versions}.",
        *("", "| account | reaper | Cloud Custodian | faster | less memory |", "|---|---|---|---|---|"),
    ]
    problems = list[str]()
    for one in races(instances):
        print(one.name, flush=True)
        runs = race(one, rounds)
        lines.append(row(one, runs))
        problems += broken(one, runs)
    if instances == INSTANCES:
        write_page(PAGE, "\n".join(lines) + "\n")
    print(*lines, *problems, sep="\n")
    return bool(problems)


def broken(one: Race, runs: Runs) -> list[str]:
    """Returns a line for each bound that is not met; most are those of a large account."""
    problems = list[str]()
    peaks = {name: max(run.peak_mb for run, _ in many) for name, many in runs.items()}
    if peaks["reaper"] > MEMORY_MB:
        problems.append(f"{one.name}: the reaper took {peaks['reaper']:.0f} MB of {MEMORY_MB}")
    times = {name: statistics.median(run.seconds for run, _ in many) for name, many in runs.items()}
    if times["reaper"] > times["custodian"] and not one.sixth:
        problems.append(f"{one.name}: slower than Custodian, {times['reaper']:.1f} s to {times['custodian']:.1f} s")
    if one.ours >= INSTANCES and peaks["custodian"] < SHARE * peaks["reaper"]:
        problems.append(f"{one.name}: more than an eighth of Custodian's memory")
    return problems


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
