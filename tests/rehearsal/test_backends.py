"""One manifest, two backends: the same lines in SageMaker and on clusters of our own, in two regions, with one table; and their end."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from contract import keys, names, tags
from contract.grid import Backend, LineOutcome, Record
from localaws.conditions import Conditions
from localaws.containers import real
from localaws.testing.waiting import HANG_S, until
from rehearsal import grid
from rehearsal.grid import GridJob
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.regions import REGIONS

pytestmark = [pytest.mark.rehearsal, pytest.mark.images]
EXAMPLE = Path(__file__).parents[2] / "examples"
DEFAULTS: dict[str, Any] = json.loads((EXAMPLE / "backends/input.json").read_text())["defaults"]
TRAINING = [place["region"] for place in REGIONS[:2]]
LINES = [
    {"backend": backend.value, "region": region} for region in TRAINING for backend in (Backend.SAGEMAKER, Backend.EC2)
]
REFUSED = {"backend": "ec2", "region": "ap-south-1"}
"""Where the deployment does not train, as Admit would say."""


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """A deployment with the example's image."""
    work = tmp_path_factory.mktemp("backends") / "work"
    settings = {"regions": REGIONS[:2]}
    wanted = ["workflow", "builds", "grid", "images", "reaper"]
    # With every event: a job whose end no event tells has its report by a clock, which test_ends_unheard.py shows.
    with Yard(work, Conditions(speed=20.0, events_lost=0.0), settings=settings, wanted=wanted) as made:
        if not real.lacks():
            real.begin(made.aws.work / "images", made.aws.at_stop)
        grid.build_image(made, EXAMPLE / "image_job")
        yield made


@pytest.fixture(scope="module")
def done(yard: Yard) -> GridJob:
    text = "".join(f"{json.dumps(one)}\n" for one in LINES)
    address = grid.upload_manifest(yard, text, "backends.jsonl")
    job = grid.start(yard, {"manifest": address, "defaults": DEFAULTS, "owner": "ada"}, "backends")
    assert job.wait(HANG_S)["status"] == "SUCCEEDED"
    return job


@pytest.fixture(scope="module")
def records(done: GridJob) -> list[Record]:
    return sorted(done.results(), key=lambda one: one.index)


def test_lines_that_differ_in_one_word_end_with_the_same_metric(records: list[Record]) -> None:
    assert [one.outcome for one in records] == [LineOutcome.COMPLETED] * len(LINES)
    assert [(one.backend.value, one.region) for one in records] == [(one["backend"], one["region"]) for one in LINES]
    assert len({one.metrics["metric"] for one in records}) == 1


def test_one_table_has_both_with_their_cost_and_where_to_look(done: GridJob) -> None:
    rows = list(csv.DictReader(io.StringIO((done.read(done.prefix.results_csv) or b"").decode(), newline="")))
    assert all(float(row["cost_usd"]) > 0 and float(row["billable_seconds"]) > 0 for row in rows)
    assert all(row["log"].startswith("https://") and row["model_artifact"].startswith("s3://") for row in rows)


def test_a_line_that_admit_would_refuse_is_refused_before_any_line_starts(yard: Yard) -> None:
    address = grid.upload_manifest(yard, "".join(f"{json.dumps(one)}\n" for one in [*LINES, REFUSED]), "refused.jsonl")
    job = grid.start(yard, {"manifest": address, "defaults": DEFAULTS}, "refused")
    ended = job.wait(HANG_S)
    assert ended["status"] == "FAILED"
    assert "line 5: region: the deployment does not train in ap-south-1" in ended["cause"]
    assert (job.trainings(), job.jobs()) == ([], {})


def test_the_nodes_of_a_line_carry_its_grid_for_the_bill(done: GridJob, yard: Yard) -> None:
    jobs = done.jobs()
    mark = jobs[1].describe_admitted().grid_line
    assert mark is not None
    assert (mark.grid, mark.index) == (done.name, 1)
    pages = yard.client("ec2").get_paginator("describe_instances").paginate()
    found = [one for page in pages for some in page["Reservations"] for one in some["Instances"]]
    marks = [{tag["Key"]: tag["Value"] for tag in one.get("Tags", [])} for one in found]
    assert {one[tags.LINE] for one in marks if one.get(tags.GRID) == done.name} == {"1"}


def test_each_line_had_one_training_or_one_job(done: GridJob) -> None:
    assert len(done.trainings()) == len(LINES) / 2
    assert sorted(done.jobs()) == [1, 3]


def test_nothing_is_left(done: GridJob) -> None:
    done.settle_grid(HANG_S)
    assert (done.trainings_left(), done.children_left(), done.processes_left(), done.instances_left()) == ([], [], 0, 0)


def test_a_grid_that_is_stopped_leaves_no_instance_of_its_lines_and_their_jobs_say_so(yard: Yard) -> None:
    endless = {**DEFAULTS, "arguments": ["--steps", "1000000"]}
    address = grid.upload_manifest(yard, "".join(f"{json.dumps(one)}\n" for one in LINES), "stopped.jsonl")
    job = grid.start(yard, {"manifest": address, "defaults": endless}, "stopped")

    def train() -> bool:
        jobs = job.jobs()
        return len(jobs) == 2 and all("Train" in one.states() and one.reports(1) for one in jobs.values())

    until(train)
    yard.client("stepfunctions").stop_execution(executionArn=job.arn, error="Enough", cause="a person stopped it")
    until(lambda: job.read(job.prefix.report) is not None)
    job.settle_grid(HANG_S)
    assert (job.trainings_left(), job.children_left(), job.processes_left(), job.instances_left()) == ([], [], 0, 0)
    for index, one in job.jobs().items():
        assert one.describe()["status"] == "ABORTED"
        report = json.loads(until(partial(job.read, keys.JobPrefix(one.name).result)))
        assert report["error"] == "GridEnded"
        assert report["cost"]["billed_s"] > 0
        assert StartedJob(yard, one.name, one.arn).instances_left() == 0
        records = {record.index: record for record in job.records()}
        assert records[index].outcome is LineOutcome.STOPPED
        assert records[index].reason.startswith("GridEnded: ")
        assert names.log_group("trainyard") in records[index].reason
