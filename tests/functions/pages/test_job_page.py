"""The page of a job says what happened, what to do, what was lost and what is not known."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import pytest

from attendant.causes import format_cause
from attendant.words import own_failure
from aws.checkpoints import ClosedSet
from aws.facts import GONE, Status
from contract import errors
from contract.curves import Curve, Point
from contract.jobs import Job
from contract.reports import Exit
from pages.attempts import (
    MOST_SPOTS,
    TimeSpan,
    count_lost,
    draw_attempt,
    find_span,
    find_time_of,
    list_answers,
    list_attempts,
)
from pages.facts import JobFacts
from pages.job import write_job
from pages.nodes import list_nodes, list_tails
from tests.builders import NOW
from tests.fakes.causes import write_cause
from tests.fakes.pages import jobs
from tests.functions.attendant.attempts import TRAINING, ended
from tests.functions.pages.document import Page, read_page

EMPTY: dict[str, Any] = {
    "status": None,
    "job": None,
    "report": None,
    "waiting": None,
    "walks": (),
    "ends": {},
    "reports": {},
    "curve": None,
    "closed": (),
    "unhealthy": (),
    "unread": (),
}
MAKERS = (jobs.success, jobs.failure, jobs.interrupted, jobs.capped, jobs.running, jobs.waiting, jobs.refused)


def read(facts: JobFacts) -> Page:
    return read_page(write_job(facts))


def with_points(*points: Point) -> JobFacts:
    return replace(jobs.success(), curve=Curve(points=points))


def test_every_fact_that_may_be_absent_is_left_out_below() -> None:
    assert {one.name for one in fields(JobFacts)} - EMPTY.keys() == {"name", "deployment", "now"}


@pytest.mark.parametrize("absent", EMPTY)
@pytest.mark.parametrize("make", MAKERS)
def test_a_page_comes_where_one_fact_is_absent(make: Any, absent: str) -> None:
    page = read(replace(make(), **{absent: EMPTY[absent]}))
    assert page.strange == []
    assert page.title.startswith(f"job {make().name}: ")


def test_a_page_comes_where_every_fact_is_absent() -> None:
    page = read(JobFacts(name="nothing", deployment="yard", now=NOW, **EMPTY))
    assert page.title == "job nothing: unknown"
    assert "Step Functions did not answer, and there is no report." in page.text


@pytest.mark.parametrize(
    ("make", "title"),
    [
        (jobs.success, "completed"),
        (jobs.failure, f"failed, {errors.TrainingFailed.__name__}"),
        (jobs.capped, f"failed, {errors.BudgetExceeded.__name__}"),
        (jobs.running, "running"),
        (jobs.waiting, "waits for capacity"),
        (jobs.refused, "refused"),
    ],
)
def test_the_title_says_how_it_ended(make: Any, title: str) -> None:
    assert read(make()).title == f"job {make().name}: {title}"


def test_cause_and_next_step_come_before_everything_else() -> None:
    text = read(jobs.failure()).text
    places = [
        text.index(words) for words in ("the command ended", "What to do next", "Links", "Attempts", "Cost", "Request")
    ]
    assert places == sorted(places)


def break_down(tail: tuple[str, ...]) -> JobFacts:
    """Rank 1 broke, and its cause is as the attendant and the Train machine write it."""
    facts = jobs.failure()
    assert facts.job is not None
    broke = ended(1, 1, tail=tail, error=errors.TrainingFailed.__name__)
    seen = replace(TRAINING, nodes={0: ended(0, 1, tail=("peer",)), 1: broke})
    cause = format_cause(own_failure(seen, 1, [0]), "The newest checkpoint is of step 200.")
    status = replace(facts.status or Status(name="FAILED"), cause=write_cause(facts.job, cause))
    return replace(facts, status=status, report={**(facts.report or {}), "cause": cause})


OUTPUT = ("epoch 1", "    loss = f()", "RuntimeError: no loss")


def with_output(facts: JobFacts, tail: tuple[str, ...]) -> JobFacts:
    nodes = facts.reports[1]
    return replace(
        facts, reports={1: {**nodes, 1: replace(nodes[1], exit=Exit(code=1, error="TrainingFailed", tail=tail))}}
    )


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_cause_has_nothing_that_has_a_section_of_its_own(is_gone: bool) -> None:
    facts = with_output(break_down(OUTPUT), OUTPUT)
    if is_gone:
        facts = replace(facts, status=Status(name=GONE))
    text = read(facts).text
    assert [text.count(line.strip()) for line in OUTPUT] == [1, 1, 1]
    assert "https://" not in text
    before, _, after = text.partition("rank 1: its last output is below")
    assert "rank 1: the command exited with code 1." in before
    assert "rank 0: peer" in after
    assert "The whole log: log group" in after


def test_a_cause_keeps_what_the_page_shows_nowhere_else() -> None:
    facts = break_down(OUTPUT)
    text = read(replace(facts, job=None, reports={})).text
    assert "RuntimeError: no loss" in text
    assert text.count("https://") >= 4
    others = with_output(facts, ())
    assert read(others).text.count("RuntimeError: no loss") == 1


def test_a_job_that_ended_does_not_say_that_its_page_is_written_anew() -> None:
    assert "every five minutes" in read(jobs.running()).text
    assert "every five minutes" not in read(jobs.success()).text


def test_a_job_that_waited_and_was_launched_does_not_wait_any_more() -> None:
    facts = replace(jobs.running(), waiting=jobs.waiting().waiting)
    assert read(facts).title.endswith(": running")


def test_a_wait_that_is_over_is_no_wait() -> None:
    waiting = {**(jobs.waiting().waiting or {}), "state": "launched", "next_try_at": None}
    assert read(replace(jobs.waiting(), waiting=waiting)).title.endswith(": running")


def test_a_job_whose_execution_is_gone_is_told_by_its_report() -> None:
    page = read(replace(jobs.failure(), status=Status(name=GONE)))
    assert page.title.endswith(f"failed, {errors.TrainingFailed.__name__}")
    assert "no longer has the execution" in page.text


def test_a_job_that_was_stopped_is_not_called_failed() -> None:
    page = read(replace(jobs.interrupted(), status=Status(name="ABORTED", started_at=NOW, ended_at=NOW + 9000)))
    assert page.title.endswith(": stopped")


def test_steps_that_an_interruption_lost_are_counted() -> None:
    text = read(jobs.interrupted()).text
    assert "30 steps lost: the next attempt went on from step 380" in text
    assert text.count("steps lost") == 3


def test_nothing_is_lost_where_the_next_attempt_says_nothing() -> None:
    facts = jobs.interrupted()
    silent = replace(facts, reports={one: nodes for one, nodes in facts.reports.items() if one != 2})
    first, second, *_ = list_attempts(silent)
    assert count_lost(first, second) is None
    assert count_lost(second, None) is None


def test_an_attempt_that_began_from_nothing_lost_every_step_before_it() -> None:
    first, second, *_ = list_attempts(jobs.interrupted())
    assert count_lost(first, replace(second, restored=-1)) == 410
    assert count_lost(first, replace(second, restored=500)) == 0


def test_parts_of_a_time_line_lie_within_it_and_behind_each_other() -> None:
    facts = jobs.interrupted()
    attempts = list_attempts(facts)
    span = find_span(facts, attempts)
    for one in attempts:
        ends = [(float(part.at[:-1]), float(part.width[:-1])) for part in draw_attempt(one, span)]
        assert all(0 <= at <= 100 and at + width <= 100.05 for at, width in ends)
        assert all(before[0] + before[1] <= after[0] + 0.05 for before, after in pairwise(ends))


@pytest.mark.parametrize("wrong", [0.0, -1e12, 1e12, float("nan")])
def test_a_wrong_clock_of_a_node_moves_nothing_out_of_its_attempt(wrong: float) -> None:
    facts = jobs.success()
    node = facts.reports[1][0]
    bad = replace(facts, reports={1: {0: replace(node, timeline=dict.fromkeys(node.timeline, wrong))}})
    attempts = list_attempts(bad)
    parts = draw_attempt(attempts[0], find_span(bad, attempts))
    assert all(float(part.at[:-1]) + float(part.width[:-1]) <= 100.05 for part in parts)


def test_the_time_of_a_step_lies_between_the_points_around_it() -> None:
    facts = with_points(Point(attempt=1, step=0, at=NOW), Point(attempt=1, step=100, at=NOW + 50))
    assert find_time_of(facts, 1, 50) == NOW + 25
    assert find_time_of(facts, 1, 101) is None
    assert find_time_of(facts, 2, 50) is None


@pytest.mark.parametrize("metric", [None, float("nan"), float("inf")])
def test_a_curve_without_a_number_is_none(metric: float | None) -> None:
    page = read(with_points(*(Point(attempt=1, step=one, at=NOW + one, metric=metric) for one in range(5))))
    assert "Metric over time" not in page.text
    assert "No metric is known" in page.text
    assert "Step over time" in page.text


@pytest.mark.parametrize(
    ("last", "shown"), [(Point(attempt=1, step=2, at=NOW + 2, diverged="nan"), "nan"), (None, "0.25")]
)
def test_the_last_metric_of_a_training_that_diverged_is_no_earlier_number(last: Point | None, shown: str) -> None:
    points = [Point(attempt=1, step=one, at=NOW + one, metric=0.5 - one / 4) for one in range(2)]
    assert f"last metric{shown}\n" in read(with_points(*points, *([last] if last else []))).text


def test_one_point_is_a_dot_and_no_point_is_a_sentence() -> None:
    assert 'd="M50.00 50.00h0"' in write_job(with_points(Point(attempt=1, step=7, at=NOW, metric=0.5))).decode()
    assert "No progress is known" in read(with_points()).text


def test_a_gap_of_a_curve_stays_a_gap() -> None:
    values = (0.1, 0.2, None, 0.4, 0.5)
    facts = with_points(*(Point(attempt=1, step=one, at=NOW + one, metric=value) for one, value in enumerate(values)))
    line = next(one for one in write_job(facts).decode().split('d="') if one.startswith("M0.00 100.00L"))
    assert line.partition('"')[0].count("M") == 2


def test_the_cost_of_each_attempt_stands_beside_the_cap() -> None:
    text = read(jobs.capped()).text
    assert "of a cap of $12.00 (98 %)" in text
    assert all(usd in text for usd in ("$4.04", "$5.65", "$2.05"))


def test_a_price_that_is_not_known_is_no_sum() -> None:
    facts = jobs.capped()
    unpriced = tuple(
        replace(walk, steps=tuple(replace(step, rung=replace(step.rung, most_usd=None)) for step in walk.steps))
        for walk in facts.walks
    )
    assert "The price of a place is not known." in read(replace(facts, walks=unpriced)).text


def test_a_job_that_launched_nothing_shows_no_cost_and_no_progress() -> None:
    text = read(jobs.waiting()).text
    assert "InsufficientInstanceCapacity" in text
    assert "Cost" not in text
    assert "Progress" not in text


def test_the_output_of_a_node_that_failed_is_shown() -> None:
    assert "device-side assert triggered" in read(jobs.failure()).text


def test_the_output_of_the_node_that_failed_first_comes_first() -> None:
    nodes = jobs.failure().reports[1]
    both = {
        rank: replace(one, exit=Exit(code=1, error=errors.TrainingFailed.__name__, tail=(f"of {rank}",)))
        for rank, one in nodes.items()
    }
    assert [one.rank for one in list_tails(both)] == [1, 0]
    assert [one.rank for one in list_nodes(both, TimeSpan(begin=NOW, end=NOW + 60), NOW)] == [1, 0]


def test_no_attempt_runs_once_the_execution_has_ended() -> None:
    assert list_attempts(jobs.running())[-1].runs
    assert [one.number for one in list_attempts(replace(jobs.success(), ends={})) if one.runs] == []


def test_what_is_left_out_is_counted() -> None:
    text = read(jobs.huge()).text
    for words in (
        "The newest 30; 70 earlier attempts are not shown.",
        "The newest 60; 640 earlier answers are not shown.",
        "64 of 512",
        "The other 448 nodes are not shown.",
        "980 earlier ones are not shown.",
        "440 lines before these: see the log.",
        "and 480 more",
        "and 80 more",
        "(cut: the cause has 125,000 characters, the execution has all of them)",
    ):
        assert words in text, words


def test_machines_that_run_on_are_named_before_everything_that_is_over() -> None:
    facts = jobs.success()
    kept = {**(facts.report or {}), "protected": [{"instance": "i-0abc", "region": "eu-central-1"}]}
    text = read(replace(facts, report=kept)).text
    assert "i-0abc in eu-central-1: a person protects it, by its tag" in text
    assert text.index("i-0abc") < text.index("Attempts")
    assert "Machines that still ran" not in read(facts).text


def test_each_answer_is_on_the_time_line_of_its_attempt() -> None:
    facts = jobs.waiting()
    attempt = list_attempts(facts)[0]
    words = [one.words for one in list_answers(attempt, find_span(facts, [attempt]))]
    assert [one.endswith(": InsufficientInstanceCapacity") for one in words] == [True] * 3
    late = replace(attempt, end=attempt.begin)
    assert list_answers(late, find_span(facts, [late])) == []


def test_the_newest_answers_of_many_attempts_are_on_the_time_lines() -> None:
    walks = []
    for attempt in range(1, 11):
        walk = jobs.walk(attempt, NOW + 3600.0 * attempt, launched=False, rungs=jobs.SPOT * 20)
        spread = [
            replace(step, answer=replace(step.answer, at=walk.started_at + 50 * place))
            for place, step in enumerate(walk.steps)
            if step.answer
        ]
        walks.append(replace(walk, steps=tuple(spread)))
    facts = replace(jobs.waiting(), walks=tuple(walks), now=NOW + 40_000)
    assert write_job(facts).count(b'class="answer"') == MOST_SPOTS + 1, "one is in the legend"
    assert write_job(replace(facts, walks=facts.walks[:1])).count(b'class="answer"') == 61


def test_many_attempts_put_no_lines_across_the_curve() -> None:
    assert b'class="again"' in write_job(jobs.interrupted())
    assert b'class="again"' not in write_job(jobs.huge())


def test_what_could_not_be_read_is_said() -> None:
    page = read(replace(jobs.success(), unread=("checkpoints in eu-central-1: AccessDenied",)))
    assert "This page is incomplete" in page.text
    assert "checkpoints in eu-central-1: AccessDenied" in page.text
    assert "This page is incomplete" not in read(jobs.success()).text


def test_a_checkpoint_without_a_step_and_a_time_is_named_all_the_same() -> None:
    assert "without a step (attempt 1, set 4)" in read(replace(jobs.success(), closed=(ClosedSet(1, 4, -1),))).text


def test_links_lead_to_the_regions_where_the_job_ran() -> None:
    ran, waits = read(jobs.success()), read(jobs.waiting())
    assert sum("/buckets/" in one for one in ran.links) == 1
    assert [one for one in waits.links if "/buckets/" in one] == []


def test_a_document_that_was_not_written_has_no_link() -> None:
    def leads(facts: JobFacts, document: str) -> bool:
        return any(document in one for one in read(facts).links)

    assert (leads(jobs.success(), "report.json"), leads(jobs.waiting(), "report.json")) == (True, False)
    assert leads(jobs.waiting(), "waiting.json")
    assert not leads(replace(jobs.waiting(), waiting=None), "waiting.json")


def test_a_job_with_a_garbled_execution_has_a_page_without_links() -> None:
    job: Job = replace(jobs.TRAINED, execution="garbled")
    assert read(replace(jobs.success(), job=job)).links == ["#page"]
