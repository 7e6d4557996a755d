"""Pages on the deployed account: of jobs that train, succeed, fail, are stopped and are refused, of a grid and of a search."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from botocore.exceptions import ClientError

from contract.grid import GridPrefix
from contract.keys import WHOLE, JobPrefix
from contract.search import SearchPrefix
from localaws.testing.waiting import until
from rehearsal import search
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.grids import HOME, SMALL, Field, sooner
from tests.rehearsal.jobs import ENDLESS, ONE, failed, stored, succeeded, train
from tests.rehearsal.searches import describe

pytestmark = [pytest.mark.rehearsal, pytest.mark.at_length]
STOPPED, UNHEARD = "page-stopped", "page-unheard"
"""Jobs that somebody stops; of the end of the second no event tells (conftest.py)."""


@pytest.fixture(scope="module")
def jobs(yard: Yard, trainer: str) -> dict[str, StartedJob]:
    """All at once, by name."""
    request = {**ONE, "code": trainer, "checkpoint_minutes": 0.02}
    commands = {
        "page-done": {"command": train(20, 0.1), "owner": "ada"},
        "page-failed": {"command": train(5, 0.1, 3)},
        STOPPED: {"command": train(100_000, 0.2), **ENDLESS},
        UNHEARD: {"command": train(100_000, 0.2), **ENDLESS},
        "page-refused": {"command": train(1, 0.1), "nodes": 0},
    }
    return {name: yard.start(request | own, name) for name, own in commands.items()}


def head(yard: Yard, key: str) -> dict[str, Any]:
    """What S3 says of a page; nothing where there is none."""
    try:
        found: dict[str, Any] = yard.client("s3").head_object(Bucket=yard.places.home, Key=key)
    except ClientError:
        return {}
    return found


def read(yard: Yard, key: str) -> str:
    """The words of a page."""
    page = re.sub(r"<(style|svg).*?</\1>", " ", stored(yard, key).decode(), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def whole(yard: Yard, key: str) -> str:
    """The words of a page once it has everything of an end."""
    until(lambda: head(yard, key).get("Metadata", {}).get(WHOLE) == "1")
    return read(yard, key)


def stop(job: StartedJob) -> None:
    job.yard.client("stepfunctions").stop_execution(executionArn=job.arn, error="Stopped", cause="no longer needed")


def test_a_job_has_a_page_while_it_trains(yard: Yard, jobs: dict[str, StartedJob]) -> None:
    job, key = jobs[STOPPED], JobPrefix(STOPPED).page
    until(lambda: "trains" in read(yard, key) if head(yard, key) else False)
    assert job.runs()
    found = head(yard, key)
    assert (found["ContentType"], found["CacheControl"]) == ("text/html; charset=utf-8", "no-cache")
    assert found["Metadata"][WHOLE] == "0"


def test_a_success_has_its_artifacts_cost_and_checkpoints_in_its_page(yard: Yard, jobs: dict[str, StartedJob]) -> None:
    execution = succeeded(jobs["page-done"])
    text = whole(yard, JobPrefix("page-done").page)
    assert "Artifacts in eu-central-1" in text
    assert "$0." in text
    assert "prefix=jobs%2Fpage-done%2Freport.html" in execution["output"]


def test_a_failure_has_its_cause_in_its_page_and_its_page_in_its_cause(yard: Yard, jobs: dict[str, StartedJob]) -> None:
    cause = failed(jobs["page-failed"], "TrainingFailed")
    text = whole(yard, JobPrefix("page-failed").page)
    assert "exited with code 3" in text
    assert "\nPage: https://" in cause
    assert "\nArtifacts in eu-central-1: https://" in cause


@pytest.mark.parametrize("name", [STOPPED, UNHEARD])
def test_a_job_that_is_stopped_has_its_end_in_its_page_whether_or_not_an_event_tells_of_it(
    yard: Yard, jobs: dict[str, StartedJob], name: str
) -> None:
    key = JobPrefix(name).page
    until(lambda: "trains" in read(yard, key) if head(yard, key) else False)
    stop(jobs[name])
    until(lambda: "no longer needed" in read(yard, key))


def test_the_page_of_a_job_that_is_stopped_gets_the_report_of_the_cleanup(
    yard: Yard, jobs: dict[str, StartedJob]
) -> None:
    assert not jobs[STOPPED].runs()
    assert "no longer needed" in whole(yard, JobPrefix(STOPPED).page)


def test_a_refused_request_has_a_page_with_the_reason(yard: Yard, jobs: dict[str, StartedJob]) -> None:
    failed(jobs["page-refused"], "InvalidRequest")
    assert "nodes: 0" in whole(yard, JobPrefix("page-refused").page)


def test_a_grid_has_its_lines_in_its_page(search_field: Field) -> None:
    with sooner(search_field.yard):
        job = search_field.start("page-grid", search_field.line(HOME, hyperparameters={"steps": 3}))
        succeeded(job)
        text = whole(search_field.yard, GridPrefix("page-grid").page)
    assert "Completed" in text or "completed" in text
    assert "prefix=grids%2Fpage-grid%2Freport.html" in job.describe()["output"]


def test_a_search_has_its_trials_in_its_page_and_so_has_the_grid_of_each_round(search_field: Field) -> None:
    with sooner(search_field.yard):
        request = describe(search_field, template={**SMALL, "hyperparameters": {"pause": 0.01}}, trials=2)
        job = search.start(search_field.yard, request, "page-search")
        succeeded(job)
        text = whole(search_field.yard, SearchPrefix("page-search").page)
        whole(search_field.yard, GridPrefix("page-search-r1").page)
    assert "loss" in text
    assert "prefix=searches%2Fpage-search%2Freport.html" in job.describe()["output"]
