"""`make bench-query`: Plan with a query of 10,000 rows, and with the manifest that the query writes, in turn.

Plan's function runs in this process, on the fake of AWS that its tests use, and a real PostgreSQL answers. Writes medians into
docs/benchmarks/query.md; ends with 1 where the query takes more than twice as long.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from aws.data_api import DataApi
from benchmarks.pages import ROOT, write_page
from contract.catalogue import KEEPER, READER
from contract.grid import GridPrefix
from planner import handler
from tests.fakes.catalogue import CLUSTER, DataApiOver, serving
from tests.functions.grid_plan.account import BUCKET, DEFAULTS, MANIFEST, Account, account, execution, plan

PAGE = ROOT / "docs" / "benchmarks" / "query.md"
ROWS, ROUNDS, MOST_RATIO = 10_000, 5, 2.0
QUERY = (
    "select 'eu-central-1' as region, 's3://data-eu/train/' as data, jsonb_build_object('lr', n / 1e6, 'seed', n) as hyperparameters "
    f"from generate_series(1, {ROWS}) as n order by n"
)


def main() -> int:
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder) / "data") as calls,
        pytest.MonkeyPatch.context() as patch,
    ):
        open_to_reader(calls)
        rows = measure(calls, patch)
    medians = {name: statistics.median(times) for name, times in rows.items()}
    ratio = medians["query"] / medians["manifest"]
    write_page(PAGE, write_text(rows, ratio))
    print(PAGE.read_text())
    return 0 if ratio <= MOST_RATIO else 1


def open_to_reader(calls: DataApiOver) -> None:
    """Makes the reader of a catalogue; the query needs no table."""
    keeper = DataApi(calls.access(KEEPER), calls)
    for statement in (
        "create schema trainyard",
        "create schema team",
        f"create role {READER} login password 'of-the-reader'",
    ):
        keeper.run(statement)
    calls.passwords[READER] = "of-the-reader"


def measure(calls: DataApiOver, patch: pytest.MonkeyPatch) -> dict[str, list[float]]:
    """Returns the seconds of each plan; the first round is not counted. Both plans have the same lines."""
    found: dict[str, list[float]] = {"query": [], "manifest": []}
    with account(patch, max_lines=ROWS) as there:
        there.keep_calls = False
        patch.setenv("TRAINYARD_CATALOGUE", json.dumps({"cluster": CLUSTER, "secret": READER}))
        patch.setattr(handler, "DataApi", partial(DataApi, calls=calls, sleep=lambda _: None))
        for number in range(ROUNDS + 1):
            asked = f"asked-{number}"
            query = seconds(lambda name=asked: plan({"query": QUERY, "defaults": DEFAULTS}, named(name)))
            body = there.s3.read(BUCKET, GridPrefix(asked).manifest)
            assert body is not None
            there.s3.write(BUCKET, MANIFEST.partition(f"{BUCKET}/")[2], body)
            written = f"written-{number}"
            manifest = seconds(lambda name=written: plan({"manifest": MANIFEST, "defaults": DEFAULTS}, named(name)))
            assert count_lines(there, asked) == count_lines(there, written) == ROWS
            if number:
                found["query"].append(query)
                found["manifest"].append(manifest)
    return found


def named(name: str) -> dict[str, str]:
    """Returns an execution of that name."""
    found = execution()
    return {**found, "name": name, "arn": f"{found['arn'].rpartition(':')[0]}:{name}"}


def count_lines(there: Account, name: str) -> int:
    return there.grid(name).lines


def seconds(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def write_text(rows: dict[str, list[float]], ratio: float) -> str:
    table = "\n".join(
        f"| {name} | {statistics.median(times):.2f} ({min(times):.2f} to {max(times):.2f}) |"
        for name, times in rows.items()
    )
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {time.strftime('%Y-%m-%d')}"
    return f"""# A query and its manifest

Written by `make bench-query`, on {machine}.

Plan's function makes a plan of {ROWS:,} lines: of a `query`, and of the manifest that the query wrote, in turn, {ROUNDS} times each; a
round before them is not counted. AWS is a fake in the same process, and PostgreSQL is real, without HTTP between. Seconds, medians, in
brackets the least and the most:

| Plan of a | seconds |
|---|---|
{table}

The query takes {ratio:.2f} times as long as the manifest; the bound is {MOST_RATIO:g}. A Data API over the network adds its answer's time
to each page of 1,000 rows, and a sleeping database some fifteen seconds: only an account shows both.
"""


if __name__ == "__main__":
    sys.exit(main())
