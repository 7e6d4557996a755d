"""Which reports count for a node, and which for nobody."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aws.facts import Seen
from aws.heard import AHEAD_S, heard, strange
from contract.reports import NodeReport, Phase
from tests.builders import NOW

IDS = ("i-0", "i-1")
REPORT = NodeReport(job="job-1", attempt=2, rank=1, instance="i-1", phase=Phase.TRAINING, sent_at=NOW, sequence=5)
SEEN = Seen(instance="i-1", report=REPORT, age_s=10.0)


def sorted_(*reports: Seen) -> tuple[dict[int, NodeReport], list[str]]:
    known = heard(reports, job="job-1", attempt=2, ids=IDS)
    return {rank: node.report for rank, node in known.items()}, strange(reports, job="job-1", attempt=2, ids=IDS)


def test_a_report_counts_for_the_rank_of_the_instance_that_wrote_it() -> None:
    assert sorted_(SEEN) == ({1: REPORT}, [])


@pytest.mark.parametrize("ahead_s", [0.4, AHEAD_S])
def test_a_report_that_is_a_little_ahead_of_the_functions_clock_was_written_now(ahead_s: float) -> None:
    known = heard([replace(SEEN, age_s=-ahead_s)], job="job-1", attempt=2, ids=IDS)
    assert known[1].age_s == 0.0


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (replace(SEEN, report=None), "cannot be read"),
        (replace(SEEN, report=replace(REPORT, attempt=1)), "is of attempt 1 of job job-1"),
        (replace(SEEN, report=replace(REPORT, job="job-10")), "is of attempt 2 of job job-10"),
        (replace(SEEN, instance="i-0"), "is of rank 1, which is i-1"),
        (replace(SEEN, report=replace(REPORT, rank=0)), "is of rank 0, which is i-0"),
        (replace(SEEN, report=replace(REPORT, rank=0, instance="i-0")), "is of rank 0, which is i-0"),
        (replace(SEEN, report=replace(REPORT, rank=2)), "is of rank 2, and there are 2"),
        (replace(SEEN, report=replace(REPORT, rank=-1)), "is of rank -1, and there are 2"),
        (replace(SEEN, age_s=-AHEAD_S - 1), "claims to be written 61 s from now"),
    ],
)
def test_a_report_of_somebody_else_counts_for_nobody_and_is_told(seen: Seen, words: str) -> None:
    known, lines = sorted_(seen)
    assert known == {}
    assert len(lines) == 1
    assert words in lines[0]


def test_a_stranger_does_not_hide_the_node() -> None:
    known, lines = sorted_(replace(SEEN, instance="i-9", report=replace(REPORT, sequence=10**9)), SEEN)
    assert known[1] == REPORT
    assert len(lines) == 1


def test_of_a_name_that_no_job_can_have_a_line_tells_the_beginning() -> None:
    """Each look logs the line, and a report may have 400 KB of name."""
    _, lines = sorted_(replace(SEEN, report=replace(REPORT, job="x" * 400_000)))
    assert len(lines[0]) < 200
