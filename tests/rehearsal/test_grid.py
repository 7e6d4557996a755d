"""Grids on the deployed account: lines are trained in their regions, by the example's own program and by a small one."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from contract import names, tags
from contract.grid import LineOutcome
from localaws.containers.unpacked import COPIED, OWN
from localaws.testing.waiting import HANG_S, until
from rehearsal import grid
from rehearsal.deployment import ACCOUNT
from rehearsal.grid import GridJob
from rehearsal.yard import Yard
from tests.rehearsal.grids import AWAY, ENDLESS, EXAMPLE, HOME, Field, sooner
from tests.rehearsal.jobs import failed, succeeded

pytestmark = [pytest.mark.rehearsal]


@pytest.fixture(scope="module")
def field(yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    with sooner(yard):
        yield Field.of(yard, tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def grids(field: Field) -> dict[str, GridJob]:
    """All at once, as each mostly waits."""
    long, steps = {"hyperparameters": ENDLESS}, {"steps": 60, "pause": 0.1}
    started = {
        "aborted": field.start("aborted", field.line(HOME, **long), field.line(AWAY, **long)),
        "met": field.start(
            "met",
            field.line(HOME, hyperparameters=steps),
            field.line(AWAY, hyperparameters=steps, market="spot", max_wait_hours=2),
        ),
        "failing": field.start("failing", field.line(AWAY, hyperparameters={"fails": "no gradient"})),
        "refused": field.start("refused", field.line(HOME, image="images:none"), {"region": "mars-1"}),
    }
    grid.build_image(field.yard, EXAMPLE / "train")
    two = "".join((EXAMPLE / "manifest.csv").read_text().splitlines(keepends=True)[:2])
    request = json.loads((EXAMPLE / "input.json").read_text())
    address = grid.upload_manifest(field.yard, two, "two.csv")
    started["two"] = grid.start(field.yard, {**request, "manifest": address}, "two")
    return started


# The abort comes first: it has to meet its lines while they train, and the others end meanwhile.


@pytest.fixture(scope="module")
def endless(grids: dict[str, GridJob]) -> GridJob:
    """Both of its lines train."""
    job = grids["aborted"]
    until(lambda: job.progress() == {"Training": 2})
    return job


def test_a_look_of_the_reaper_at_a_grid_that_trains_would_end_nothing_of_it(endless: GridJob) -> None:
    (stack,) = endless.yard.client("cloudformation").describe_stacks(StackName="trainyard-reaper")["Stacks"]
    (function,) = (one["OutputValue"] for one in stack["Outputs"] if one["OutputKey"] == "ReaperFunction")
    trainings = {one.training.name for one in endless.trainings()}

    def read_would_end() -> dict[str, Any] | None:
        """None where some call of it was throttled too often: the function fails then."""
        done = endless.yard.client("lambda").invoke(FunctionName=function, Payload=b'{"report_only": true}')
        answer: dict[str, Any] = json.loads(done["Payload"].read())
        return None if "FunctionError" in done else answer

    found = until(read_would_end)
    asked = [call for call in list(endless.yard.aws.recorder.calls) if call.name == "sagemaker:ListTags"]
    reaper = [str(call.parameters) for call in asked if "Reaper" in call.role]
    assert {one for one in trainings if any(one in given for given in reaper)} == trainings
    assert [line for line in found["would_end"] if any(one in line for one in trainings)] == []


@pytest.fixture(scope="module")
def aborted(endless: GridJob) -> GridJob:
    """Stopped by a person meanwhile."""
    endless.yard.client("stepfunctions").stop_execution(executionArn=endless.arn)
    return endless


def test_an_aborted_grid_stops_its_trainings_in_every_region(aborted: GridJob) -> None:
    until(lambda: not [one for one in aborted.trainings() if one.runs])
    assert {(one.region, one.status) for one in aborted.trainings()} == {(HOME, "Stopped"), (AWAY, "Stopped")}
    assert aborted.describe()["status"] == "ABORTED"


def test_what_was_stopped_has_its_records_and_its_manifest_to_start_again(aborted: GridJob) -> None:
    until(lambda: aborted.read(aborted.prefix.report))
    assert aborted.read(aborted.prefix.stopped)
    assert [record.outcome for record in aborted.results()] == [LineOutcome.STOPPED] * 2
    again = [json.loads(line) for line in (aborted.read(aborted.prefix.failed) or b"").splitlines()]
    assert [line["region"] for line in again] == [HOME, AWAY]


def test_no_child_of_an_aborted_grid_goes_on(aborted: GridJob) -> None:
    until(lambda: {one.status for one in aborted.children()} <= {"SUCCEEDED", "FAILED"})
    assert len(aborted.trainings()) == 2


# two lines in two regions


@pytest.fixture(scope="module")
def two(grids: dict[str, GridJob]) -> GridJob:
    succeeded(grids["two"])
    return grids["two"]


def test_a_plain_two_column_file_is_trained_line_by_line_in_its_regions(two: GridJob) -> None:
    assert two.states() == ["Plan", "Submit", "Size", "Array", "Over", "Collect", "Decide", "Report", "Done"]
    assert [(one.region, one.status, one.training.tags[tags.LINE]) for one in two.trainings()] in (
        [(HOME, "Completed", "0"), (AWAY, "Completed", "1")],
        [(AWAY, "Completed", "1"), (HOME, "Completed", "0")],
    )
    records = two.results()
    assert [(one.line, one.region, one.outcome) for one in records] == [
        (1, HOME, LineOutcome.COMPLETED),
        (2, AWAY, LineOutcome.COMPLETED),
    ]
    assert all(record.metrics["accuracy"] > 0.7 for record in records)
    assert all(record.cost_usd for record in records)


def test_what_a_line_made_lies_in_its_region_and_its_log_says_on_what_it_trained(two: GridJob) -> None:
    for record in two.results():
        bucket = names.bytes_bucket("trainyard", ACCOUNT, record.region)
        assert record.artifact.startswith(f"s3://{bucket}/grids/two/")
        key = record.artifact.removeprefix(f"s3://{bucket}/")
        assert two.yard.client("s3", record.region).head_object(Bucket=bucket, Key=key)["ContentLength"] > 1000
        logs = two.yard.client("logs", record.region)
        group = "/aws/sagemaker/TrainingJobs"
        (stream,) = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=f"{record.training}/")[
            "logStreams"
        ]
        events = logs.get_log_events(logGroupName=group, logStreamName=stream["logStreamName"], startFromHead=True)
        how, first = (one["message"] for one in events["events"][:2])
        assert how in (OWN, COPIED)
        images = sum(1 for _ in (EXAMPLE / "digits" / record.region / "digits.csv").open())
        assert f"{images - (images + 4) // 5} images" in first


def test_the_table_for_people_says_the_same(two: GridJob) -> None:
    rows = list(csv.DictReader(io.StringIO((two.read(two.prefix.results_csv) or b"").decode())))
    assert [(row["line"], row["region"], row["status"]) for row in rows] == [
        ("1", HOME, "Completed"),
        ("2", AWAY, "Completed"),
    ]
    assert two.read(two.prefix.failed) == b""


def test_a_training_reads_only_its_own_regions_bytes(two: GridJob) -> None:
    role = names.training_role("trainyard", HOME)
    for call in two.yard.aws.recorder.of():
        if call.role.endswith(f"/{role}") and call.service == "s3":
            assert call.parameters["Bucket"] == names.bytes_bucket("trainyard", ACCOUNT, call.region)


# what goes wrong


def test_faults_that_a_grid_survives_leave_one_training_a_line(grids: dict[str, GridJob]) -> None:
    job = grids["met"]
    succeeded(job)
    settled = replace(grid.summarise(job, wall_s=0.0), trainings_left=[], children_left=[], processes_left=0)
    assert grid.shortcomings(settled) == []
    killed = next(one for one in job.children() if one.index == 0)
    assert [attempt.code for attempt in killed.attempts] == [137, 0]
    assert {one.training.tags[tags.LINE]: one.interruptions for one in job.trainings()} == {"0": 0, "1": 1}
    assert all(record.metrics["loss"] == pytest.approx(0.017, abs=0.001) for record in job.results())


def test_a_line_that_fails_says_why_and_is_ready_to_be_started_again(grids: dict[str, GridJob]) -> None:
    job = grids["failing"]
    job.wait(HANG_S)
    assert "Single" in job.states()
    (record,) = job.results()
    assert (record.outcome, record.artifact) == (LineOutcome.FAILED, "")
    assert "no gradient" in record.reason
    (again,) = (json.loads(line) for line in (job.read(job.prefix.failed) or b"").splitlines())
    assert again["hyperparameters"] == {"fails": "no gradient"}


def test_a_bad_manifest_starts_nothing_and_says_all_that_is_wrong_with_it(grids: dict[str, GridJob]) -> None:
    job = grids["refused"]
    cause = failed(job, "InvalidRequest")
    assert job.states() == ["Plan", "Failed"]
    assert all(word in cause for word in ("images:none", "mars-1", "line 2"))
    assert (job.trainings(), job.children(), job.plan()) == ([], [], None)


def test_nothing_of_any_grid_is_left(grids: dict[str, GridJob], two: GridJob) -> None:
    for job in grids.values():
        job.wait(HANG_S)
    two.settle_grid(30.0)
    assert (two.trainings_left(), two.children_left(), two.processes_left()) == ([], [], 0)
