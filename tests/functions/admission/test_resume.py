"""A job that begins from another job's checkpoint, as Admit finds it; wrong names are in the table of refusals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from contract import items, keys
from contract.codec import encode
from contract.errors import InvalidRequest
from contract.jobs import SourceCheckpoint
from tests.builders import INTENT, JOB, LAUNCHED, PLACE, rung
from tests.fakes import state
from tests.fakes.faults import Kind, Mishap
from tests.fakes.functions import Functions
from tests.fakes.yard import ABROAD
from tests.functions.admission.account import ARN, Account, account, start
from tools.refusals.jobs import LEAST
from tools.refusals.jobs.resume import RUNNING, TRAINED

FROM = {**LEAST, "resume_from": TRAINED}
NEWEST = SourceCheckpoint(job=TRAINED, region=PLACE.region, bucket=PLACE.bucket, attempt=2, number=3, step=1200)


@pytest.fixture
def there() -> Iterator[Account]:
    with account() as opened:
        yield opened


def resumes(there: Account) -> SourceCheckpoint | None:
    job = there.job("job-1")
    assert job is not None
    return job.resume


def test_a_job_begins_with_the_newest_checkpoint_of_the_job_that_it_names(there: Account) -> None:
    told = start(FROM)
    assert resumes(there) == NEWEST
    assert (told["resumes"], told["step"]) == ("step 1200 of job trained (attempt 2, eu-central-1)", 1200)


def test_a_job_that_names_none_begins_with_nothing_and_asks_nobody(there: Account) -> None:
    told = start(LEAST)
    assert (resumes(there), told["resumes"], told["step"]) == (None, None, -1)
    assert there.find_params("stepfunctions:DescribeExecution") == []


def test_a_checkpoint_in_a_region_in_which_this_job_does_not_run_is_found(there: Account) -> None:
    places = {place.region: place for place in (PLACE, ABROAD)}
    job = replace(JOB, id=TRAINED, execution=f"{ARN}{TRAINED}", places=places)
    there.put(keys.JobPrefix(TRAINED).description, encode(job))
    there.close(TRAINED, attempt=3, number=1, step=1300, bucket=ABROAD.bucket)
    start(FROM)
    assert resumes(there) == SourceCheckpoint(
        job=TRAINED, region=ABROAD.region, bucket=ABROAD.bucket, attempt=3, number=1, step=1300
    )


def test_a_region_that_is_gone_does_not_hide_the_checkpoints_of_another(there: Account) -> None:
    gone = replace(ABROAD, bucket="yard-gone")
    job = replace(JOB, id=TRAINED, execution=f"{ARN}{TRAINED}", places={ABROAD.region: gone, PLACE.region: PLACE})
    there.put(keys.JobPrefix(TRAINED).description, encode(job))
    start(FROM)
    assert resumes(there) == NEWEST


def test_a_region_that_may_not_be_read_is_named_because_it_may_have_a_newer_checkpoint(there: Account) -> None:
    job = replace(JOB, id=TRAINED, execution=f"{ARN}{TRAINED}", places={p.region: p for p in (PLACE, ABROAD)})
    there.put(keys.JobPrefix(TRAINED).description, encode(job))
    there.close(TRAINED, attempt=3, number=1, step=1300, bucket=ABROAD.bucket)
    there.faults.add(Kind.DENIED, "s3:ListObjectsV2", region=ABROAD.region)
    told = start(FROM)["resumes"]
    assert told == (
        "step 1200 of job trained (attempt 2, eu-central-1); "
        f"the job may have a newer one in {ABROAD.region}, whose bucket Admit could not read"
    )


def launched_in(there: Account, *regions: str) -> None:
    """The walks of the job that is named, an attempt in each region."""
    for attempt, region in enumerate(regions, 1):
        step = replace(INTENT.steps[0], rung=rung(region=region), answer=LAUNCHED)
        walk = replace(INTENT, job=TRAINED, attempt=attempt, steps=(step,))
        state.store(there, items.launch(TRAINED, attempt, 1), encode(walk))


def test_a_region_in_which_the_job_never_ran_may_be_away(there: Account) -> None:
    job = replace(JOB, id=TRAINED, execution=f"{ARN}{TRAINED}", places={p.region: p for p in (PLACE, ABROAD)})
    there.put(keys.JobPrefix(TRAINED).description, encode(job))
    launched_in(there, PLACE.region)
    there.faults.add(Kind.UNREACHABLE, "s3:ListObjectsV2", times=50, region=ABROAD.region)
    told = start(FROM)["resumes"]
    assert resumes(there) == replace(NEWEST, unread=(ABROAD.region,))
    assert told.endswith(f"may have a newer one in {ABROAD.region}, whose bucket Admit could not read")


def test_a_region_of_whose_launch_the_table_does_not_know_is_read_all_the_same(there: Account) -> None:
    """A table that was restored to an earlier point lacks the newest attempts."""
    job = replace(JOB, id=TRAINED, execution=f"{ARN}{TRAINED}", places={p.region: p for p in (PLACE, ABROAD)})
    there.put(keys.JobPrefix(TRAINED).description, encode(job))
    launched_in(there, PLACE.region)
    there.close(TRAINED, attempt=3, number=1, step=1300, bucket=ABROAD.bucket)
    start(FROM)
    found = resumes(there)
    assert found is not None
    assert found.region == ABROAD.region


@pytest.mark.parametrize("known", [True, False], ids=["it ran there", "no walk is known"])
def test_a_region_in_which_the_job_may_have_run_has_to_answer(*, known: bool) -> None:
    there = Account()
    functions = Functions(there)
    execution = {"arn": f"{ARN}job-1", "name": "job-1", "started_at": "2027-01-15T08:00:00.000Z"}
    job = replace(JOB, id=TRAINED, execution=f"{ARN}{TRAINED}", places={p.region: p for p in (PLACE, ABROAD)})
    there.put(keys.JobPrefix(TRAINED).description, encode(job))
    if known:
        launched_in(there, PLACE.region, ABROAD.region)
    there.faults.add(Kind.UNREACHABLE, "s3:ListObjectsV2", times=50, region=ABROAD.region)
    with functions.installed():
        outcome = functions.invoke("admission", {"request": FROM, "execution": execution})
    assert outcome.error not in {"", "InvalidRequest"}


def test_every_region_in_which_the_job_ran_is_asked(there: Account) -> None:
    job = replace(JOB, id=TRAINED, execution=f"{ARN}{TRAINED}", places={p.region: p for p in (PLACE, ABROAD)})
    there.put(keys.JobPrefix(TRAINED).description, encode(job))
    launched_in(there, PLACE.region, ABROAD.region)
    there.close(TRAINED, attempt=3, number=1, step=1300, bucket=ABROAD.bucket)
    start(FROM)
    found = resumes(there)
    assert found is not None
    assert found.region == ABROAD.region


def test_a_set_that_a_rank_could_not_use_is_passed_over(there: Account) -> None:
    there.s3.write(PLACE.bucket, keys.BytesPrefix(TRAINED).unusable(2, 3), b"{}")
    start(FROM)
    found = resumes(there)
    assert found is not None
    assert (found.attempt, found.number) == (1, 4)


def test_a_set_that_a_rank_took_back_is_passed_over(there: Account) -> None:
    there.s3.write(PLACE.bucket, keys.BytesPrefix(TRAINED).part(2, 3, 1, "missed"), b"{}")
    assert start(FROM)["resumes"] != "step 1200 of job trained (attempt 2, eu-central-1)"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"x" * (2 * 1024**2)], ids=["empty", "torn", "list", "huge"])
def test_a_set_that_nobody_can_read_is_passed_over(there: Account, body: bytes) -> None:
    """Nodes of the other job wrote it."""
    there.s3.write(PLACE.bucket, keys.BytesPrefix(TRAINED).closed(2, 3), body)
    start(FROM)
    found = resumes(there)
    assert found is not None
    assert found.attempt == 1


def test_a_checkpoint_without_a_step_is_one_all_the_same(there: Account) -> None:
    there.close(TRAINED, attempt=4, number=1, step=-1)
    assert start(FROM)["resumes"] == "a checkpoint without a step of job trained (attempt 4, eu-central-1)"


def test_a_job_that_ran_a_moment_ago_may_be_begun_from_once_it_has_ended(there: Account) -> None:
    request = {**LEAST, "resume_from": RUNNING}
    with pytest.raises(InvalidRequest, match="running still runs"):
        start(request)
    (execution,) = there.states.executions.known.values()
    there.states.executions.end(execution, "ABORTED")
    start(request)
    assert resumes(there) == replace(NEWEST, job=RUNNING)


def test_a_dry_run_says_what_it_would_begin_with_and_writes_nothing(there: Account) -> None:
    assert start({**FROM, "dry_run": True})["resumes"] == "step 1200 of job trained (attempt 2, eu-central-1)"
    assert there.changes == []


def test_other_mistakes_are_told_beside_it(there: Account) -> None:
    with pytest.raises(InvalidRequest) as refused:
        start({**LEAST, "resume_from": "nobody", "nodes": 10_000})
    assert "resume_from: nobody is not a job" in str(refused.value)
    assert "nodes: 10000 is too large" in str(refused.value)
    assert there.changes == []


@pytest.mark.parametrize("call", ["s3:ListObjectsV2", "stepfunctions:DescribeExecution"])
def test_an_answer_that_does_not_come_refuses_nobody(call: str) -> None:
    """What is not known is asked again by the machine, and is no mistake of the person."""
    there = Account()
    functions = Functions(there)
    execution = {"arn": f"{ARN}job-1", "name": "job-1", "started_at": "2027-01-15T08:00:00.000Z"}
    event: dict[str, Any] = {"request": FROM, "execution": execution}
    with functions.installed():
        outcome = functions.invoke("admission", event, [Mishap(call, times=50, fault=Kind.THROTTLED)])
    assert outcome.error not in ("", "InvalidRequest")
    assert there.job("job-1") is None
