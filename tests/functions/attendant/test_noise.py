"""A node that writes urgent reports without end is answered without looks, and keeps no other job's report waiting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from attendant.noise import LOOKS, MOST_KNOWN, WINDOW_S, HintFilter
from attendant.records import Hint
from contract import items
from contract.codec import encode
from contract.reports import Exit, Phase
from tests.builders import NODE_ROLE, NOW
from tests.fakes.fleet import WORKING, Fleet

NOISY, OTHER = "job-0000", "job-0001"
LOUD, QUIET = Hint(job=NOISY, instance="i-loud"), Hint(job=OTHER, instance="i-quiet")


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    made = Fleet([4, 1], now=NOW)
    with made.functions.installed():
        yield made


def record(fleet: Fleet, job: str, rank: int, *, named: str = "", failed: bool = False) -> dict[str, Any]:
    """As the stream has an urgent report of this rank, which may name another job as its own."""
    instance = fleet.instances[job][rank]
    report = replace(WORKING, job=named or job, rank=rank, instance=instance)
    if failed:
        report = replace(report, phase=Phase.SAVING, outcome=Exit(code=1, error="TrainingFailed"))
    key = items.node_report(NODE_ROLE, instance)
    return {
        "eventSource": "aws:dynamodb",
        "dynamodb": {
            "Keys": {items.PARTITION: {"S": key.partition}, items.SORT: {"S": key.sort}},
            "NewImage": {items.DOCUMENT: items.packed(encode(report))},
        },
    }


def looks(fleet: Fleet, *records: dict[str, Any]) -> int:
    """At how many attempts a batch of the stream has the attendant look."""
    return sum(fleet.functions.invoke("attendant", {"Records": list(records)}).value.values())


def test_thousands_of_reports_cause_few_looks(fleet: Fleet) -> None:
    made = 0
    for _ in range(50):
        made += looks(fleet, *(record(fleet, NOISY, 0) for _ in range(100)))
        fleet.clock.now += 0.1
    assert made == LOOKS


def test_a_report_in_the_same_batch_of_a_node_that_is_quiet_is_looked_at(fleet: Fleet) -> None:
    for _ in range(20):
        looks(fleet, record(fleet, NOISY, 0))
    assert looks(fleet, record(fleet, NOISY, 0)) == 0
    assert looks(fleet, *[record(fleet, NOISY, 0)] * 50, record(fleet, OTHER, 0)) == 1


def test_another_node_of_the_same_job_is_looked_at(fleet: Fleet) -> None:
    for _ in range(20):
        looks(fleet, record(fleet, NOISY, 0))
    assert looks(fleet, record(fleet, NOISY, 1)) == 1


def test_a_node_that_names_other_jobs_uses_up_its_own_looks_and_none_of_theirs(fleet: Fleet) -> None:
    made = sum(looks(fleet, record(fleet, NOISY, 0, named=OTHER)) for _ in range(20))
    assert made == LOOKS
    assert looks(fleet, record(fleet, OTHER, 0, failed=True)) == 1


def test_all_that_a_node_says_of_its_end_is_looked_at(fleet: Fleet) -> None:
    """Its error, an order, its machine, its last commits: within one second."""
    assert [looks(fleet, record(fleet, OTHER, 0, failed=True)) for _ in range(4)] == [1] * 4


def test_what_was_not_looked_at_the_clock_finds(fleet: Fleet) -> None:
    for _ in range(20):
        looks(fleet, record(fleet, NOISY, 0))
    assert sum(fleet.functions.invoke("attendant", {"source": "aws.events"}).value.values()) == 2


def test_a_node_that_falls_silent_is_looked_at_again() -> None:
    seen = HintFilter()
    for _ in range(LOOKS):
        assert seen.select([LOUD], NOW) == [LOUD]
    assert seen.select([LOUD, QUIET], NOW + WINDOW_S - 1) == [QUIET]
    assert seen.select([LOUD], NOW + WINDOW_S + 1) == [LOUD]


def test_a_clock_that_was_set_back_silences_no_node() -> None:
    seen = HintFilter()
    for _ in range(LOOKS):
        seen.select([LOUD], NOW + 1e6)
    assert seen.select([LOUD], NOW) == [LOUD]


def test_a_node_that_is_not_looked_at_does_not_stay_so_by_writing_on() -> None:
    seen, at = HintFilter(), NOW
    found = 0
    for _ in range(1000):
        found += len(seen.select([LOUD], at))
        at += 0.1
    assert found == LOOKS * 100 / WINDOW_S


def test_the_memory_is_bounded_and_forgets_those_that_were_seen_least_lately() -> None:
    seen = HintFilter()
    for number in range(MOST_KNOWN + 50):
        seen.select([Hint(job=NOISY, instance=f"i-{number}")], NOW)
    assert len(seen._times) == MOST_KNOWN
    assert "i-0" not in seen._times
