"""Which reports count for a node, and which for nobody."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aws.facts import Seen
from aws.heard import heard, strange
from contract.keys import JobPrefix
from contract.reports import NodeReport, Phase
from tests.builders import NOW

IDS = ("i-0", "i-1")
KEYS = JobPrefix("job-1")
REPORT = NodeReport(job="job-1", attempt=2, rank=1, instance="i-1", phase=Phase.TRAINING, sent_at=NOW, sequence=5)
REGULAR = Seen(key=KEYS.report(2, 1), report=REPORT, age_s=10.0)
URGENT = Seen(key=KEYS.urgent(2, 1), report=replace(REPORT, sequence=9, phase=Phase.SAVING), age_s=3.0)


def sorted_(*reports: Seen) -> tuple[dict[int, NodeReport], list[str]]:
    known = heard(reports, job="job-1", attempt=2, ids=IDS)
    return {rank: node.report for rank, node in known.items()}, strange(reports, job="job-1", attempt=2, ids=IDS)


@pytest.mark.parametrize("order", [(REGULAR, URGENT), (URGENT, REGULAR)], ids=["regular first", "urgent first"])
def test_the_report_that_was_written_last_wins_in_whatever_order_they_are_listed(order: tuple[Seen, ...]) -> None:
    known, lines = sorted_(*order)
    assert (known[1].phase, lines) == (Phase.SAVING, [])


def test_a_node_was_heard_when_its_newest_object_was_written() -> None:
    both = (REGULAR, replace(URGENT, age_s=60.0))
    assert heard(both, job="job-1", attempt=2, ids=IDS)[1].age_s == 10.0


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (replace(REGULAR, report=None), "cannot be read"),
        (replace(REGULAR, report=replace(REPORT, attempt=1)), "is of attempt 1 of job job-1"),
        (replace(REGULAR, report=replace(REPORT, job="job-10")), "is of attempt 2 of job job-10"),
        (replace(REGULAR, report=replace(REPORT, instance="i-0")), "is of i-0, and rank 1 is i-1"),
        (replace(REGULAR, report=replace(REPORT, rank=2)), "is of rank 2, and there are 2"),
        (replace(REGULAR, report=replace(REPORT, rank=-1)), "is of rank -1, and there are 2"),
        (
            replace(REGULAR, report=replace(REPORT, rank=0, instance="i-0")),
            "is of rank 0, whose reports have other keys",
        ),
        (replace(REGULAR, key=KEYS.report(2, 1) + "x"), "whose reports have other keys"),
    ],
)
def test_a_report_of_somebody_else_counts_for_nobody_and_is_told(seen: Seen, words: str) -> None:
    known, lines = sorted_(seen)
    assert known == {}
    assert len(lines) == 1
    assert words in lines[0]


def test_a_stranger_with_a_higher_number_does_not_hide_the_node() -> None:
    stranger = replace(URGENT, report=replace(REPORT, instance="i-9", sequence=10**9))
    known, lines = sorted_(stranger, REGULAR)
    assert known[1] == REPORT
    assert len(lines) == 1
