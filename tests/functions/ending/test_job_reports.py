"""A job's report is the newest attempt's word: what a slow or doubled Terminate of an earlier one writes never takes its place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from contract import items, keys
from contract.codec import encode
from contract.health import UnhealthyNode
from ending.report import build_report
from tests.builders import JOB
from tests.fakes.faults import Mishap
from tests.fakes.functions import Functions, Outcome
from tests.fakes.state import store
from tests.fakes.yard import admitted, deployed

REPORT = keys.JobPrefix(JOB.id).result
LOST = {"error": "NodeLost", "cause": "its host failed"}


class Yard:
    """A job of which nothing runs."""

    def __init__(self) -> None:
        self.aws = deployed()
        self.functions = Functions(self.aws)
        self.job = admitted(self.aws)

    def terminate(self, attempt: int, problem: dict[str, str] | None = None, *mishaps: Mishap) -> Outcome:
        event = {"job": JOB.id, "attempt": attempt, "problem": problem}
        return self.functions.invoke("terminator", event, mishaps)

    def write(self, **report: Any) -> None:
        self.aws.s3.write(JOB.home_bucket, REPORT, json.dumps({"job": JOB.id, **report}).encode())

    @property
    def report(self) -> dict[str, Any]:
        written: dict[str, Any] = json.loads(self.aws.s3.read(JOB.home_bucket, REPORT) or b"{}")
        return written


@pytest.fixture
def yard() -> Iterator[Yard]:
    made = Yard()
    with made.functions.installed():
        yield made


def before_the_report(nth: int, meanwhile: Callable[[], object], times: int = 1) -> Mishap:
    """Somebody does something between Terminate's look at the report and its writing."""

    def do() -> None:
        meanwhile()

    return Mishap("s3:PutObject", nth, times, meanwhile=do)


def test_a_terminate_of_an_earlier_attempt_leaves_the_report_of_a_later_one(yard: Yard) -> None:
    assert yard.terminate(2).error == ""
    assert yard.terminate(1, LOST).error == ""
    assert (yard.report["attempts"], yard.report["error"]) == (2, None)


def test_a_terminate_that_is_overtaken_while_it_writes_leaves_the_later_report(yard: Yard) -> None:
    overtaken = before_the_report(1, lambda: yard.write(attempts=2, error=None, cause=None))
    assert yard.terminate(1, LOST, overtaken).error == ""
    assert (yard.report["attempts"], yard.report["error"]) == (2, None)


def test_a_terminate_that_went_on_while_its_execution_was_stopped_leaves_the_report_of_that_end(yard: Yard) -> None:
    """The cleanup has looked for the second time, and nobody else would correct it."""
    stopped = before_the_report(1, lambda: yard.write(attempts=1, error="Aborted", cause="by ada"))
    assert yard.terminate(1, LOST, stopped).error == ""
    assert yard.report["error"] == "Aborted"


def test_a_terminate_of_an_execution_that_goes_on_after_its_end_tells_how_it_ended_now(yard: Yard) -> None:
    yard.write(attempts=1, error="Aborted", cause="by ada")
    assert yard.terminate(1).error == ""
    assert yard.report["error"] is None


def test_a_terminate_that_comes_twice_tells_the_same_attempt_again(yard: Yard) -> None:
    yard.terminate(1, LOST)
    yard.terminate(1, {"error": "Stalled", "cause": "rank 0 lives"})
    assert (yard.report["attempts"], yard.report["error"]) == (1, "Stalled")


def test_a_report_that_nobody_can_read_is_replaced(yard: Yard) -> None:
    yard.aws.s3.write(JOB.home_bucket, REPORT, b"{")
    assert yard.terminate(1, LOST).error == ""
    assert yard.report["error"] == "NodeLost"


def test_a_report_that_others_write_again_and_again_is_told_when_terminate_is_asked_again(yard: Yard) -> None:
    yard.write(attempts=1, error="E")
    crowd = before_the_report(1, lambda: yard.write(attempts=0, error="E", at=yard.aws.clock.now), times=99)
    outcome = yard.terminate(1, LOST, crowd)
    assert outcome.error == "StillRunning"
    assert "report could not be written" in outcome.cause
    assert yard.terminate(1, LOST).error == ""
    assert yard.report["error"] == "NodeLost"


def test_attempts_that_failed_before_are_kept_in_the_report_of_the_one_that_overtook_nobody(yard: Yard) -> None:
    yard.terminate(1, LOST)
    yard.terminate(2)
    assert [one["attempt"] for one in yard.report["recovered"]] == [1]


BAD = UnhealthyNode(
    attempt=1,
    rank=1,
    instance="i-1",
    region="eu-central-1",
    zone="eu-central-1a",
    instance_type="g5.xlarge",
    why="Xid 79",
)


def test_a_report_lists_the_unhealthy_machines_of_all_attempts(yard: Yard) -> None:
    for attempt in (1, 2):
        one = replace(BAD, attempt=attempt)
        store(yard.aws, items.unhealthy(JOB.id, attempt, one.rank), encode(one))
    yard.terminate(3)
    assert [(one["attempt"], one["instance"], one["zone"]) for one in yard.report["unhealthy"]] == [
        (1, "i-1", "eu-central-1a"),
        (2, "i-1", "eu-central-1a"),
    ]


def test_a_report_of_a_job_on_healthy_machines_lists_none(yard: Yard) -> None:
    yard.terminate(1)
    assert yard.report["unhealthy"] == []


@pytest.mark.parametrize("document", [b"", b"{", b"[]", b'{"attempt": "one"}'])
def test_an_item_that_cannot_be_read_keeps_no_attempt_from_its_end(yard: Yard, document: bytes) -> None:
    store(yard.aws, items.unhealthy(JOB.id, 1, 0), document)
    assert yard.terminate(1, LOST).error == ""
    assert yard.report["unhealthy"] == []


def test_who_does_not_know_the_machines_keeps_those_of_the_report_before() -> None:
    told = [{"instance": "i-1"}]
    assert build_report("job-1", 1, None, [], before={"unhealthy": told})["unhealthy"] == told
    for garbage in (None, [], {"unhealthy": "i-1"}, {}):
        assert build_report("job-1", 1, None, [], before=garbage)["unhealthy"] == []
