"""What Terminate says of an attempt's checkpoints: nodes write them, so it reads what a good job has and believes nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from aws import checkpoints
from aws.checkpoints import ClosedSet
from contract import items
from contract.codec import encode
from contract.commits import MOST_SET, CheckpointSet
from contract.intents import LaunchAnswer
from contract.keys import LAST_SET, BytesPrefix
from ending.report import build_report
from terminator.policy import has_progressed, newest_step
from tests.builders import INTENT, JOB, LAUNCHED, PLACE, rung
from tests.fakes.faults import Kind, Mishap
from tests.fakes.functions import Functions, Outcome
from tests.fakes.state import store
from tests.fakes.yard import ABROAD, admitted, deployed

KEYS = BytesPrefix(JOB.id)
LOST = {"error": "NodeLost", "cause": "its host failed", "retried": False}


class Yard:
    """A job whose first two attempts were launched at home, and of which nothing runs any more."""

    def __init__(self) -> None:
        self.aws = deployed(places=(PLACE, ABROAD))
        self.functions = Functions(self.aws)
        admitted(self.aws, replace(JOB, places={place.region: place for place in (PLACE, ABROAD)}))
        for attempt in (1, 2):
            self.launch(attempt)

    def launch(self, attempt: int, region: str = PLACE.region) -> None:
        answer: LaunchAnswer = replace(LAUNCHED, at=0.0)
        steps = (replace(INTENT.steps[0], rung=rung(f"{region}a", region=region), answer=answer),)
        intent = replace(INTENT, attempt=attempt, steps=steps, held_until=0.0)
        store(self.aws, items.launch(JOB.id, attempt, 1), encode(intent))

    def close(self, step: int, *, attempt: int = 1, number: int = 1, bucket: str = PLACE.bucket, **fields: Any) -> None:
        closed = CheckpointSet(job=JOB.id, attempt=attempt, number=number, step=step, closed_at=0.0, parts=())
        self.put(KEYS.closed(attempt, number), encode(replace(closed, **fields)), bucket)

    def put(self, key: str, body: bytes = b"{}", bucket: str = PLACE.bucket) -> None:
        self.aws.s3.write(bucket, key, body)

    def terminate(
        self, attempt: int = 1, *mishaps: Mishap, step: int = -1, problem: dict[str, Any] | None = LOST
    ) -> Outcome:
        event = {"job": JOB.id, "attempt": attempt, "problem": problem, "step": step}
        return self.functions.invoke("terminator", event, mishaps)

    def further(self, attempt: int = 1, *mishaps: Mishap, step: int = -1) -> tuple[bool, int]:
        """Whether the attempt brought the job further, and the highest step now."""
        outcome = self.terminate(attempt, *mishaps, step=step)
        assert outcome.error == "", outcome.cause
        return outcome.value["progressed"], outcome.value["step"]


@pytest.fixture
def yard() -> Iterator[Yard]:
    made = Yard()
    with made.functions.installed():
        yield made


def test_an_attempt_that_closed_a_newer_checkpoint_brought_its_job_further(yard: Yard) -> None:
    yard.close(20)
    assert yard.further() == (True, 20)
    assert yard.further(step=10) == (True, 20)


@pytest.mark.parametrize("before", [20, 21, 10**15])
def test_a_checkpoint_that_is_no_newer_than_those_before_does_not(yard: Yard, before: int) -> None:
    yard.close(20)
    assert yard.further(step=before) == (False, before)


def test_an_attempt_without_a_checkpoint_does_not(yard: Yard) -> None:
    assert yard.further(step=5) == (False, 5)


def test_a_checkpoint_of_another_attempt_does_not(yard: Yard) -> None:
    yard.close(20, attempt=1)
    yard.close(99, attempt=10)
    assert yard.further(2, step=10) == (False, 10)


def test_a_set_that_is_open_or_that_nobody_can_restore_does_not(yard: Yard) -> None:
    yard.put(KEYS.plan(1, 1))
    yard.put(KEYS.part(1, 1, 0))
    assert yard.further() == (False, -1)
    yard.close(20, number=2)
    yard.put(KEYS.unusable(1, 2))
    assert yard.further() == (False, -1)


def test_a_set_that_a_rank_took_back_does_not(yard: Yard) -> None:
    """The last rank may close a set while another one takes its answer back; no node restores it."""
    yard.close(20)
    yard.put(KEYS.part(1, 1, 3, "missed"))
    assert yard.further() == (False, -1)


def test_the_set_of_an_attempts_end_counts_by_its_step_alone(yard: Yard) -> None:
    """It holds what was restored where the training came no further."""
    yard.close(20, number=LAST_SET)
    assert yard.further(step=20) == (False, 20)
    assert yard.further(step=19) == (True, 20)
    yard.close(-1, number=LAST_SET)
    assert yard.further() == (False, -1)


def test_of_a_trainer_that_tells_no_step_any_set_of_new_files_counts(yard: Yard) -> None:
    yard.close(-1, number=3)
    yard.close(-1, number=LAST_SET)
    assert yard.further() == (True, -1)


def test_a_set_counts_where_the_attempt_was_launched_and_nowhere_else(yard: Yard) -> None:
    yard.close(20, bucket=ABROAD.bucket)
    assert yard.further() == (False, -1)
    yard.launch(1, ABROAD.region)
    assert yard.further() == (True, 20)


def test_an_attempt_that_was_never_launched_asks_no_bucket(yard: Yard) -> None:
    yard.close(20, attempt=7)
    assert yard.further(7) == (False, -1)
    assert [call.name for call in yard.aws.calls if call.name == "s3:ListObjectsV2"] == []


def test_a_job_that_ended_well_is_asked_for_no_checkpoint(yard: Yard) -> None:
    yard.close(20)
    assert yard.terminate(problem=None).value.keys() == {"terminated", "cost"}
    assert [call.name for call in yard.aws.calls if call.name == "s3:ListObjectsV2"] == []


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"step": 9}', b"\xff\xfe", b'{"step": 1e400}', b"x" * (MOST_SET + 1)],
    ids=["empty", "cut", "a list", "a step alone", "no text", "infinite", "too long"],
)
def test_what_is_no_set_counts_for_nothing_and_hides_no_other(yard: Yard, body: bytes) -> None:
    yard.put(KEYS.closed(1, 9), body)
    assert yard.further(step=3) == (False, 3)
    yard.close(20, number=2)
    assert yard.further(step=3) == (True, 20)


@pytest.mark.parametrize("step", [10**19, -(10**19), 1.5, "20", None, True])
def test_a_step_that_is_no_whole_number_of_a_size_that_any_machine_holds_counts_for_nothing(
    yard: Yard, step: Any
) -> None:
    yard.close(step)
    assert yard.further(step=3) == (False, 3)


def test_no_more_is_listed_than_a_good_attempt_has(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "MOST_KEYS", 10)
    for number in range(1, 20):
        yard.put(KEYS.part(1, number, 0))
    yard.close(20, number=50)
    assert yard.further() == (False, -1)
    yard.close(20, number=1)
    assert yard.further() == (True, 20)


def test_no_more_sets_are_read_than_stay(yard: Yard) -> None:
    for number in range(1, 30):
        yard.close(number, number=number)
    assert yard.further() == (True, 29)
    read = [
        call.params["Key"] for call in yard.aws.calls if call.name == "s3:GetObject" and "closed" in str(call.params)
    ]
    assert read == [KEYS.closed(1, number) for number in (29, 28, 27)]


@pytest.mark.parametrize("kind", [Kind.ERROR, Kind.UNREACHABLE, Kind.DENIED, Kind.THROTTLED])
@pytest.mark.parametrize("call", ["s3:ListObjectsV2", "s3:GetObject"])
def test_a_bucket_that_does_not_answer_keeps_no_job_from_its_next_attempt(yard: Yard, call: str, kind: Kind) -> None:
    """The recovery counts then."""
    yard.launch(1, ABROAD.region)
    yard.close(20, bucket=ABROAD.bucket)
    began = yard.aws.clock.now
    broken = Mishap(call, times=50, region=ABROAD.region, fault=kind)
    assert yard.further(1, broken, step=4) == (False, 4)
    assert yard.aws.clock.now - began < 60
    assert yard.further(step=4) == (True, 20)


def test_a_job_that_somebody_garbled_ends_all_the_same(yard: Yard) -> None:
    yard.close(20)
    store(yard.aws, items.job(JOB.id), b"{")
    assert yard.further(step=4) == (False, 4)


def test_a_terminate_that_runs_twice_says_the_same(yard: Yard) -> None:
    yard.close(20)
    assert [yard.further(step=4) for _ in range(3)] == [(True, 20)] * 3


def test_a_machine_of_before_that_tells_no_step_is_answered(yard: Yard) -> None:
    yard.close(20)
    event = {"job": JOB.id, "attempt": 1, "problem": LOST}
    assert yard.functions.invoke("terminator", event).value["progressed"] is True


def test_the_report_knows_nothing_of_retries() -> None:
    assert "retried" not in build_report(JOB.id, 1, LOST, [])


@pytest.mark.parametrize(
    ("closed", "before", "further", "step"),
    [
        ([], -1, False, -1),
        ([ClosedSet(1, 1, 0)], -1, True, 0),
        ([ClosedSet(1, 1, 0)], 0, False, 0),
        ([ClosedSet(1, 4, 8), ClosedSet(1, 3, 12)], 9, True, 12),
        ([ClosedSet(1, 4, -1), ClosedSet(1, 3, 12)], 12, True, 12),
        ([ClosedSet(1, LAST_SET, -1), ClosedSet(1, 3, 12)], 12, False, 12),
    ],
)
def test_progress_is_a_higher_step_or_new_files_without_one(
    closed: list[ClosedSet], before: int, further: bool, step: int
) -> None:
    assert (has_progressed(closed, before), newest_step(closed, before)) == (further, step)
