"""Searches on the deployed account: rounds in two regions, a refusal, and one that is stopped while it trains."""

from __future__ import annotations

import json

import pytest

from contract.grid import LineOutcome
from localaws.testing.waiting import until
from rehearsal import grid, search
from rehearsal.search import SearchJob
from rehearsal.yard import Yard
from tests.rehearsal.grids import AWAY, HOME, Field, sooner
from tests.rehearsal.jobs import failed, succeeded
from tests.rehearsal.mailbox import Mailbox
from tests.rehearsal.searches import describe

pytestmark = [pytest.mark.rehearsal, pytest.mark.at_length]


@pytest.fixture(scope="module")
def done(search_field: Field, stopped_searches: dict[str, SearchJob], mailbox: Mailbox) -> SearchJob:  # noqa: ARG001  (hears of it)
    """Four trials in two rounds; the first is a person's own."""
    assert stopped_searches
    with sooner(search_field.yard):
        job = search.start(search_field.yard, describe(search_field, begin_with=[{"steps": 6}], owner="ada"), "found")
        succeeded(job)
    return job


def test_each_trial_trains_once_in_the_place_whose_turn_it_is(done: SearchJob) -> None:
    rows = done.rows()
    assert [row["region"] for row in rows] == [HOME, AWAY, HOME, AWAY]
    assert [row["grid"] for row in rows] == ["found-r1", "found-r1", "found-r2", "found-r2"]
    trainings = [one.training.name for job in done.rounds() for one in job.trainings()]
    assert sorted(trainings) == sorted(row["job"] for row in rows)


def test_what_a_trial_reports_is_its_value(done: SearchJob) -> None:
    assert done.questions()[0]["steps"] == 6
    for row in done.rows():
        assert float(row["value"]) == pytest.approx(1 / int(row["hp.steps"]), abs=0.001)


def test_the_best_trial_is_told_with_the_line_that_trains_it_again(done: SearchJob, mailbox: Mailbox) -> None:
    best = json.loads(done.read(done.files.best) or b"{}")
    assert best["parameters"] == {"steps": 6}
    assert best["line"]["region"] == HOME
    assert best["artifact"].endswith("/model.tar.gz")
    assert until(lambda: mailbox.about("search found 4 trials, best loss 0.167"))
    with sooner(done.yard):
        text = json.dumps(best["line"]) + "\n"
        again = grid.start(done.yard, {"manifest": grid.upload_manifest(done.yard, text, "best.jsonl")}, "best-again")
        succeeded(again)
    (record,) = again.results()
    assert record.metrics == best["metric"]


def test_a_wrong_search_hears_all_that_is_wrong_with_it_and_starts_nothing(search_field: Field) -> None:
    wrong = describe(
        search_field,
        search={"steps": {"int": [6, 2]}, "pause": {"float": [0, 1], "log": True}},
        objective={"metric": "accuracy", "direction": "maximize"},
        parallel=100_000,
        pruner="median",
    )
    wrong["template"] |= {"image": "images:none"}
    job = search.start(search_field.yard, wrong, "wrong-search")
    cause = failed(job, "InvalidRequest")
    for words in (
        "search.steps.int: [6, 2] is an empty range",
        "search.pause: has log, and begins at 0",
        "search.pause: template.hyperparameters sets it too",
        "objective.metric: accuracy is not defined by template.metrics, which define loss",
        "parallel: 100,000 is too large",
        "pruner: is not here",
        "template.image: ",
    ):
        assert words in cause
    assert job.rounds() == []
    assert job.read(job.files.description) is None


def test_a_stopped_search_ends_its_round_although_step_functions_did_not(
    yard: Yard, stopped_searches: dict[str, SearchJob]
) -> None:
    job = stopped_searches["aborted-search"]
    (round_,) = job.rounds()
    until(lambda: not round_.runs())
    until(lambda: job.report() != {})
    assert [one.outcome for one in round_.records()] == [LineOutcome.STOPPED] * 2
    assert [one.training.name for one in round_.trainings() if one.runs] == []
    report = job.report()
    assert report["problem"] == {"error": "Stopped", "cause": "no longer needed"}
    assert (report["trials"], report["with_value"], report["best"]) == (2, 0, None)
    assert enders(yard, round_.arn) == {"SearchCleanup"}


def test_a_stopped_search_goes_on_under_another_name_and_asks_the_same_first(
    search_field: Field, stopped_searches: dict[str, SearchJob]
) -> None:
    old = stopped_searches["aborted-search"]
    until(lambda: old.report() != {})
    job = search.start(search_field.yard, {"resume": "aborted-search", "trials": 3}, "resumed-search")
    until(lambda: len(job.questions()) == 2)
    assert job.questions() == old.questions()
    search_field.yard.client("stepfunctions").stop_execution(executionArn=job.arn)
    until(lambda: not any(one.runs() for one in job.rounds()))


def enders(yard: Yard, execution: str) -> set[str]:
    """Roles that stopped an execution."""
    stops = [call for call in list(yard.aws.recorder.calls) if call.name == "states:StopExecution" and not call.error]
    return {
        name for call in stops if call.parameters["executionArn"] == execution for name in NAMED if name in call.role
    }


NAMED = ("SearchCleanup", "Reaper", "SearchMachine")
