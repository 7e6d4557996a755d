"""Texts of a document of any length come out within their limits, and short ones as they were."""

from __future__ import annotations

from dataclasses import replace

from agent.fitting import MOMENTS, bounded
from contract.reports import Exit, NodeReport, Phase

REPORT = NodeReport(job="j", attempt=1, rank=0, instance="i-0", phase=Phase.TRAINING, sent_at=0.0)


def test_a_report_within_the_limits_stays_as_it_is() -> None:
    report = replace(REPORT, exit=Exit(code=1, reason="why", tail=("a", "", "b")))
    assert bounded(report) == report


def test_the_begin_and_the_end_of_a_long_text_are_kept() -> None:
    cut = bounded(Exit(code=1, reason="begin " + "x" * 1000 + " end"), 100).reason
    assert cut.startswith("begin x")
    assert cut.endswith("x end")
    assert len(cut) <= 107


def test_the_last_lines_of_an_output_are_kept() -> None:
    assert bounded(Exit(code=1, tail=("long" * 50, "aaaa", "bbbb")), 10).tail == ("aaaa", "bbbb")


def test_lines_count_though_they_are_empty() -> None:
    assert len(bounded(Exit(code=1, tail=("",) * 100_000), 2_000).tail) == 2_000


def test_a_line_longer_than_all_that_may_be_kept_is_left_out() -> None:
    assert bounded(Exit(code=1, tail=("x" * 11,)), 10).tail == ()


def test_a_timeline_of_thousands_of_long_names_becomes_short() -> None:
    timeline = {f"{'x' * 1000}{number}": 0.0 for number in range(5000)}
    cut = bounded(replace(REPORT, timeline=timeline), 2_000).timeline
    assert len(cut) <= MOMENTS
    assert sum(map(len, cut)) <= MOMENTS * (2_000 // MOMENTS + 7)


def test_a_phase_stays_a_phase() -> None:
    assert bounded(REPORT, 1).phase is Phase.TRAINING
