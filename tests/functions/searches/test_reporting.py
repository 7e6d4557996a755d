"""What a search writes for people: a table, the best trial, a report, and a message that comes once."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest

from contract.search import Search, SearchPrefix, Trial
from searches import reporting
from searches.policy import SearchState, find_best
from searches.request import read
from searches.table import COLUMNS, MORE, write_table
from tests.fakes.faults import Kind
from tests.functions.search.account import ENVIRONMENT, Searches, record_of, request_of
from tools.refusals.searches.yard import LEAST, template

PREFIX = SearchPrefix("tune-7")
BROKEN = {"error": "SearchFailed", "cause": "The grid of round 2 is FAILED."}


def report(there: Searches, search: Search, why: str = "All is told.", problem: Any = None) -> dict[str, Any]:
    return reporting.report(ENVIRONMENT, there.store, search, why, problem)


def messages(there: Searches) -> list[tuple[str, str]]:
    return there.aws.topics.messages


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def trial(number: int = 0, value: float | None = 0.5, **changes: Any) -> Trial:
    usual = Trial(
        number=number,
        parameters={"lr": 0.01},
        value=value,
        outcome="Failed" if value is None else "Completed",
        reason="out of memory" if value is None else "",
        grid="tune-7-r1",
        index=number,
        region="eu-central-1",
        training=f"yard-tune-7-{number}",
        seconds=600.0,
        cost_usd=0.5,
        artifact="s3://bytes/model.tar.gz",
        log="https://log",
    )
    return replace(usual, **changes)


# the files


def test_a_search_leaves_a_table_the_best_and_a_report(there: Searches) -> None:
    search = there.settle()
    there.train(search, [0.5, None])
    there.train(search, [0.9, 0.7], 2, 2)
    whole = report(there, search)
    rows = table(there.text(PREFIX.trials))
    assert [(row["trial"], row["grid"], row["index"], row["status"], row["value"]) for row in rows] == [
        ("0", "tune-7-r1", "0", "Completed", "0.5"),
        ("1", "tune-7-r1", "1", "Failed", ""),
        ("2", "tune-7-r2", "0", "Completed", "0.9"),
        ("3", "tune-7-r2", "1", "Completed", "0.7"),
    ]
    assert rows[1]["reason"] == "out of memory"
    best = json.loads(there.text(PREFIX.best))
    assert (best["trial"], best["metric"], best["parameters"]) == (2, {"accuracy": 0.9}, {"lr": 0.012})
    assert best["artifact"].endswith("tune-7-r2/00000000/model.tar.gz")
    written = json.loads(there.text(PREFIX.report))
    assert written["best"] == best
    assert written["history"] == [
        {"round": 1, "trials": 2, "best": 0.5},
        {"round": 2, "trials": 4, "best": 0.9},
    ]
    assert (whole["trials"], whole["with_value"], whole["rounds"], whole["cost_usd"]) == (4, 3, 2, 2.0)


def test_the_machine_is_told_what_its_output_has_room_for(there: Searches) -> None:
    """A template may be as large as an input of Step Functions, and there may be a thousand rounds."""
    search = there.settle()
    there.train(search, [0.5])
    whole = report(there, search)
    assert "history" not in whole
    assert "prefix=searches%2Ftune-7%2Freport.html" in whole["page"]
    assert "line" not in whole["best"]


def test_a_search_without_a_value_has_no_best(there: Searches) -> None:
    search = there.settle()
    there.train(search, [None, None])
    whole = report(there, search)
    assert there.aws.s3.read(there.store.name, PREFIX.best) is None
    assert (whole["best"], whole["results"]["best"]) == (None, "")
    assert whole["failures"] == ["- 2 trials: out of memory"]


def test_a_search_that_asked_nothing_is_reported_all_the_same(there: Searches) -> None:
    whole = report(there, there.settle(), problem=BROKEN)
    assert (whole["trials"], whole["rounds"]) == (0, 0)
    assert table(there.text(PREFIX.trials)) == []


def test_the_line_of_the_best_trains_the_same(there: Searches) -> None:
    given = {
        "template": template(region=None, hyperparameters={"epochs": 3}),
        "places": [{"region": name} for name in ("eu-central-1", "us-east-1", "us-west-2")],
    }
    search = there.settle(**given)
    grid = there.train(search, [0.1, 0.9, 0.2])
    report(there, search)
    best = json.loads(there.text(PREFIX.best))
    questions = there.store.questions("tune-7", 1)
    assert questions is not None
    assert best["line"] == questions[1]
    assert best["line"]["region"] == "us-east-1"
    assert grid == "tune-7-r1"


def test_the_line_of_the_best_of_a_resumed_search_has_its_place(there: Searches) -> None:
    places = [{"region": name} for name in ("eu-central-1", "us-east-1", "us-west-2")]
    old = there.settle("earlier", template=template(region=None), places=places)
    there.train(old, [0.1, 0.2, 0.3, 0.9, 0.4])
    there.end("earlier")
    search = there.store.settle(there.check({"resume": "earlier"}).search)
    there.train(search, [0.5], first=5)
    report(there, search)
    questions = there.store.questions("earlier", 1)
    assert questions is not None
    written = json.loads(there.text(PREFIX.report))
    assert written["best"]["line"] == questions[3]
    assert written["history"] == [{"round": 1, "trials": 6, "best": 0.9}]


def test_trials_of_a_warm_start_are_in_no_file(there: Searches) -> None:
    there.train(there.settle("earlier"), [0.99])
    search = there.settle(warm_start="earlier")
    there.train(search, [0.5])
    whole = report(there, search)
    assert [row["value"] for row in table(there.text(PREFIX.trials))] == ["0.5"]
    assert whole["best"]["metric"] == {"accuracy": 0.5}


@pytest.mark.parametrize("reason", ["=1+1", "+cmd", "-2", "@SUM(A1)", "\tx", "\rx"])
def test_no_reason_is_a_formula(reason: str) -> None:
    (row,) = table(write_table(request_of(), [trial(value=None, reason=reason)]))
    assert row["reason"] == f"'{reason}"


@pytest.mark.parametrize("choice", ["=1+1", "+cmd", "-2", "@SUM(A1)"])
def test_no_choice_and_no_name_is_a_formula(choice: str) -> None:
    wanted = request_of(search={"act": {"choice": ["relu", choice]}, "=name": {"int": [0, 3]}})
    text = write_table(wanted, [trial(parameters={"act": choice, "=name": 2}, grid="-a-r1")])
    (row,) = table(text)
    assert (row["hp.act"], row["hp.=name"], row["grid"]) == (f"'{choice}", "2", "'-a-r1")


def test_numbers_below_zero_stay_numbers() -> None:
    wanted = request_of(search={"shift": {"float": [-5, 5]}})
    (row,) = table(write_table(wanted, [trial(value=-1.5, parameters={"shift": -2.5})]))
    assert (row["value"], row["hp.shift"]) == ("-1.5", "-2.5")


def test_a_parameter_may_be_called_as_a_column() -> None:
    wanted = request_of(search={"value": {"int": [0, 3]}})
    header = write_table(wanted, []).splitlines()[0].split(",")
    assert len(header) == len(COLUMNS) + 1 + len(MORE)


def test_lines_and_quotes_in_a_reason_stay_in_their_cell() -> None:
    rows = table(write_table(request_of(), [trial(value=None, reason='line 1\n"line 2", 3'), trial(1)]))
    assert [row["reason"] for row in rows] == ['line 1\n"line 2", 3', ""]


# the message


def test_a_message_names_the_search_its_end_and_its_best(there: Searches) -> None:
    search = there.settle(owner="ada", max_cost_usd=20)
    there.train(search, [0.5, None, 0.9])
    report(there, search, "All 3 trials are told.")
    ((subject, text),) = messages(there)
    assert subject == "Trainyard yard: search tune-7 3 trials, best accuracy 0.9"
    assert "Search tune-7 of the deployment yard, owner ada." in text
    assert "All 3 trials are told." in text
    assert "3 trials in 1 rounds, 2 with a value, about $1.50 of at most $20.00." in text
    assert "Best: accuracy 0.9 in trial 2 (lr=0.012), s3://bytes/grids/tune-7-r1/00000002/model.tar.gz." in text
    assert "Why trials failed:\n- 1 trial" in text
    assert f"All trials: s3://{there.store.name}/searches/tune-7/trials.csv" in text
    assert f"trains it again: s3://{there.store.name}/searches/tune-7/best.json" in text


def test_a_message_of_a_search_that_failed_says_so_first(there: Searches) -> None:
    search = there.settle()
    there.train(search, [None])
    report(there, search, "All 1 trials of round 1 failed.", BROKEN)
    ((subject, text),) = messages(there)
    assert subject == "Trainyard yard: search tune-7 failed: 1 trials, best no trial has a value"
    assert "It did not end by itself: SearchFailed: The grid of round 2 is FAILED." in text
    assert "No trial has a value." in text
    assert "best.json" not in text


def test_a_warning_of_the_search_is_in_its_report(there: Searches) -> None:
    there.train(there.settle("earlier"), [0.5, 0.6])
    search = there.settle(warm_start="earlier", search={"lr": {"float": [0.0105, 0.5]}})
    assert report(there, search)["warnings"] == ["warm_start: 1 trials of earlier have values that this search has not"]


def test_the_same_report_is_not_sent_twice(there: Searches) -> None:
    search = there.settle()
    there.train(search, [0.5])
    first = report(there, search, "All is told.")
    before = there.text(PREFIX.report)
    assert report(there, search, "All is told.") == first
    assert len(messages(there)) == 1
    assert there.text(PREFIX.report) == before


def test_the_same_end_in_other_words_is_not_sent_twice(there: Searches) -> None:
    """The machine and the cleanup say why it failed."""
    search = there.settle()
    there.train(search, [0.5])
    report(there, search, "one", BROKEN)
    report(there, search, "other", {"error": "Aborted", "cause": "a person pressed Stop"})
    assert len(messages(there)) == 1


@pytest.mark.parametrize("change", ["problem", "trials", "cost"])
def test_another_end_is_sent_again(there: Searches, change: str) -> None:
    search = there.settle()
    grid = there.train(search, [0.5])
    report(there, search)
    if change == "trials":
        there.train(search, [0.6], 2, 1)
    if change == "cost":
        there.count(grid, [record_of(0, 0.5, cost_usd=0.75)])
    report(there, search, problem=BROKEN if change == "problem" else None)
    assert len(messages(there)) == 2


def test_a_topic_that_does_not_answer_keeps_no_report_from_being_written(there: Searches) -> None:
    search = there.settle()
    there.train(search, [0.5])
    there.aws.faults.add(Kind.DENIED, "sns:Publish", times=5)
    report(there, search)
    assert messages(there) == []
    assert json.loads(there.text(PREFIX.report))["trials"] == 1


def test_a_report_that_was_not_written_is_sent_again(there: Searches) -> None:
    search = there.settle()
    there.train(search, [0.5])
    report(there, search)
    del there.aws.s3.buckets[there.store.name].objects[PREFIX.report]
    report(there, search)
    assert len(messages(there)) == 2


@pytest.mark.parametrize("body", [b"", b"not json", b"[1]", b"null"])
def test_a_report_that_cannot_be_read_is_written_anew(there: Searches, body: bytes) -> None:
    search = there.settle()
    there.train(search, [0.5])
    there.aws.s3.write(there.store.name, PREFIX.report, body)
    report(there, search)
    assert json.loads(there.text(PREFIX.report))["trials"] == 1
    assert len(messages(there)) == 1


def test_a_reported_value_is_short_in_a_message_and_whole_in_a_file() -> None:
    wanted, _, _ = read(LEAST)
    own = (trial(value=1 / 3),)
    search = Search(id="tune-7", deployment="yard", execution="arn", started_at="", given=LEAST)
    best = find_best(own, wanted.objective.direction)
    assert best is not None
    whole = reporting.describe_best(wanted, search, best)
    assert whole["metric"] == {"accuracy": 1 / 3}
    assert "accuracy 0.333333 in trial 0" in reporting._word_best(whole)
    summed = reporting.sum_up(wanted, search, SearchState(trials=own, rounds=(1,), spent_usd=0.5, most_usd=()))
    assert summed["history"] == [{"round": 1, "trials": 1, "best": 1 / 3}]
