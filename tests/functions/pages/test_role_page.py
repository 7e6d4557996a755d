"""The page of a job with roles says which node has which role, and what half a launch was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contract import errors
from contract.health import UnhealthyNode
from contract.intents import LaunchOutcome
from contract.reports import LAST_OUTPUT, Exit
from pages.attempts import (
    draw_attempt,
    find_span,
    list_answers,
    list_attempts,
)
from pages.facts import JobFacts
from pages.job import write_job
from pages.outcomes import leave_out_output
from tests.builders import LAUNCHED, NOW, WITH_ROLES, shaped
from tests.fakes.pages import jobs
from tests.functions.pages.document import Page, read_page


def read(facts: JobFacts) -> Page:
    return read_page(write_job(facts))


def with_roles() -> JobFacts:
    done, over = jobs.success(), NOW + 2000
    shown = shaped("eu-central-1a")
    ids = tuple(f"i-{rank}" for rank in range(5))
    step = replace(done.walks[0].steps[0], rung=shown, answer=replace(LAUNCHED, instances=ids))
    reason = "rank 4: the command exited with code 3"
    failed = Exit(code=3, error=errors.TrainingFailed.__name__, reason=reason, tail=("no such batch",))
    reports = {rank: jobs.end_of(jobs.node(rank, NOW + 20, step=10), over) for rank in range(5)}
    reports[4] = replace(reports[4], exit=failed)
    job = replace(WITH_ROLES, id=done.name)
    return replace(done, job=job, walks=(replace(done.walks[0], steps=(step,)),), reports={1: reports})


def test_the_page_of_a_run_with_roles_says_which_node_has_which() -> None:
    page = read(with_roles())
    assert page.strange == []
    for said in ("0, chief 0", "1, worker 0", "2, worker 1", "3, ps 0", "4, evaluator 0"):
        assert said in page.text
    assert "3 × g5.xlarge in eu-central-1a, on-demand; 2 × m5.large in eu-central-1a, on-demand" in page.text


def test_the_last_output_of_a_run_with_roles_says_which_role_it_is_of() -> None:
    assert "Rank 4, evaluator 0: TrainingFailed: rank 4: the command exited with code 3" in read(with_roles()).text


@pytest.mark.parametrize("head", ["rank 4 (evaluator 0)", "rank 4"])
def test_a_cause_says_of_an_output_that_is_shown_elsewhere_where_it_is(head: str) -> None:
    """Causes of versions before this one name ranks alone."""
    cause = f"{head}: the command exited with code 3.\nIts nodes said:\n  {head}: {LAST_OUTPUT}\n      no such batch\nThe whole log: g."
    short = leave_out_output(cause, {4})
    assert f"  {head}: its last output is below\nThe whole log" in short
    assert "no such batch" not in short
    assert leave_out_output(cause, {3}) == cause


def test_a_machine_at_fault_has_its_role() -> None:
    bad = UnhealthyNode(
        attempt=1, rank=3, instance="i-3", region="r", zone="z", instance_type="m5.large", why="GPU 0", role="ps 0"
    )
    assert "Attempt 1, rank 3 (ps 0): i-3" in read(replace(with_roles(), unhealthy=(bad,))).text
    assert "Attempt 1, rank 3: i-3" in read(replace(with_roles(), unhealthy=(replace(bad, role=""),))).text


def test_the_request_of_a_run_with_roles_shows_what_each_runs_and_what_its_end_means() -> None:
    text = read(with_roles()).text
    assert "Role ps" in text
    assert "1, ends served: python serve.py" in text
    assert "5 of g5.xlarge, m5.large" in text
    assert "the image's entry point" not in text


def with_half() -> JobFacts:
    facts = with_roles()
    (step,) = facts.walks[0].steps
    code = "InsufficientInstanceCapacity"
    lost = replace(
        LAUNCHED,
        at=facts.walks[0].started_at + 5,
        outcome=LaunchOutcome.NO_CAPACITY,
        code=code,
        instances=("i-0",) * 3,
        shape=1,
    )
    walk = replace(facts.walks[0], steps=(replace(step, answer=lost),))
    return replace(
        facts, status=jobs.running().status, walks=(walk,), reports={}, report=None, ends={}, curve=None, closed=()
    )


def test_the_page_of_half_a_launch_says_what_runs_and_what_was_missing() -> None:
    facts = with_half()
    text = read(facts).text
    assert "3 × g5.xlarge in eu-central-1a, on-demand; no m5.large" in text
    assert "launched machines for some of its roles only" in text
    assert "nothing was launched" not in text
    assert "asks EC2 for its machines" not in text
    said = text[text.index("Launch answers") :]
    assert "m5.large in eu-central-1a, on-demand" in said
    assert "g5.xlarge + m5.large" not in said
    assert "at most so far" in text
    assert "Attempt 1 ends" in text


def test_the_time_line_of_half_a_launch_asks_until_the_answer_and_then_ends_it() -> None:
    facts = with_half()
    (one,) = list_attempts(facts)
    span = find_span(facts, [one])
    assert [part.kind for part in draw_attempt(one, span)] == ["ask", "save"]
    (spot,) = list_answers(one, span)
    assert spot.words == "m5.large in eu-central-1a: InsufficientInstanceCapacity"


def test_a_run_without_roles_speaks_of_none() -> None:
    assert "Role " not in read(jobs.success()).text
