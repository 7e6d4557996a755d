"""A deployment whose function of pages is gone: every end is as it is with pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract import keys
from contract.keys import JobPrefix
from localaws.conditions import Conditions
from localaws.testing.waiting import until
from rehearsal.yard import Yard
from tests.rehearsal.jobs import HAPPY, ONE, failed, left, path, stored, succeeded, train

pytestmark = [pytest.mark.rehearsal]
SPEED = 20.0
TRAINER = Path(__file__).with_name("trainer")


@pytest.fixture(scope="module")
def pageless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """Whose function PageWriter is deleted."""
    work = tmp_path_factory.mktemp("pageless") / "work"
    # With every event: a job whose end no event tells has its report minutes later, with pages or without.
    with Yard(work, Conditions(speed=SPEED, events_lost=0.0), wanted=["workflow", "reaper", "pages"]) as yard:
        functions = yard.client("lambda")
        pages = functions.get_paginator("list_functions").paginate()
        (writer,) = (
            one["FunctionName"] for page in pages for one in page["Functions"] if "PageWriter" in one["FunctionName"]
        )
        functions.delete_function(FunctionName=writer)
        yield yard


@pytest.fixture(scope="module")
def code(pageless: Yard) -> str:
    return pageless.upload(TRAINER, "trainer")


def test_a_success_is_a_success(pageless: Yard, code: str) -> None:
    job = pageless.start({**ONE, "code": code, "command": train(5, 0.1)}, "done")
    succeeded(job)
    assert path(job) == HAPPY
    assert json.loads(stored(pageless, JobPrefix("done").result))["error"] is None


def test_an_error_of_the_code_is_that_error(pageless: Yard, code: str) -> None:
    job = pageless.start({**ONE, "code": code, "command": train(5, 0.1, 3)}, "wrong")
    assert "exited with code 3" in failed(job, "TrainingFailed")


def test_a_job_that_is_stopped_leaves_nothing_and_has_its_report(pageless: Yard, code: str) -> None:
    job = pageless.start({**ONE, "code": code, "command": train(100_000, 0.2)}, "stopped")
    until(lambda: job.states()[-1:] == ["Train"] and bool(left(job)))
    pageless.client("stepfunctions").stop_execution(executionArn=job.arn, error="Stopped", cause="enough")
    until(lambda: not left(job))
    until(lambda: JobPrefix("stopped").result in job._listed(pageless.places.home, JobPrefix("stopped").result))


def test_nothing_had_a_page(pageless: Yard) -> None:
    listed = pageless.client("s3").get_paginator("list_objects_v2")
    found = [
        one["Key"]
        for page in listed.paginate(Bucket=pageless.places.home, Prefix=keys.JOBS)
        for one in page["Contents"]
    ]
    assert len(found) > 3
    assert [key for key in found if key.endswith(keys.PAGE)] == []
