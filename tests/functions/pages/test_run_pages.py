"""The pages of a grid and of a search say what came of their lines, and where the rest is."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

import pytest

from aws.facts import GONE, Status
from contract import errors
from contract.grid import LineOutcome
from pages.charts import MOST_DOTS, choose_axis
from pages.facts import GridFacts, SearchFacts
from pages.grid import write_grid
from pages.scatter import draw_parameters, read_value
from pages.search import write_search
from tests.builders import NOW
from tests.fakes.pages import runs
from tests.functions.pages.document import Page, read_page

OF_GRID: dict[str, Any] = {
    "status": None,
    "grid": None,
    "report": None,
    "records": (),
    "parameters": {},
    "bucket": "",
    "unread": (),
}
OF_SEARCH: dict[str, Any] = {"status": None, "search": None, "report": None, "trials": (), "bucket": "", "unread": ()}
ALWAYS = {"name", "deployment", "now"}


def read(facts: GridFacts | SearchFacts) -> Page:
    return read_page(write_grid(facts) if isinstance(facts, GridFacts) else write_search(facts))


def test_every_fact_that_may_be_absent_is_left_out_below() -> None:
    assert {one.name for one in fields(GridFacts)} - ALWAYS == OF_GRID.keys()
    assert {one.name for one in fields(SearchFacts)} - ALWAYS == OF_SEARCH.keys()


@pytest.mark.parametrize("absent", OF_GRID)
@pytest.mark.parametrize(
    "facts", [runs.grid(40), runs.grid(40, 20), runs.refused_grid()], ids=["ended", "runs", "refused"]
)
def test_a_page_of_a_grid_comes_where_one_fact_is_absent(facts: GridFacts, absent: str) -> None:
    page = read(replace(facts, **{absent: OF_GRID[absent]}))
    assert page.strange == []
    assert page.title.startswith(f"grid {facts.name}: ")


@pytest.mark.parametrize("absent", OF_SEARCH)
@pytest.mark.parametrize(
    "facts", [runs.search(20), runs.search(20, runs=True), runs.failed_search()], ids=["ended", "runs", "failed"]
)
def test_a_page_of_a_search_comes_where_one_fact_is_absent(facts: SearchFacts, absent: str) -> None:
    page = read(replace(facts, **{absent: OF_SEARCH[absent]}))
    assert page.strange == []
    assert page.title.startswith(f"search {facts.name}: ")


def test_pages_come_where_every_fact_is_absent() -> None:
    grid = read(GridFacts(name="g", deployment="yard", now=NOW, **OF_GRID))
    search = read(SearchFacts(name="s", deployment="yard", now=NOW, **OF_SEARCH))
    assert (grid.title, search.title) == ("grid g: unknown", "search s: unknown")


def test_a_grid_whose_lines_did_not_all_complete_is_not_called_completed() -> None:
    page = read(runs.grid(40))
    assert page.title == "grid lr-sweep: ended, 3 not completed"
    assert "failed.jsonl as a grid of another name" in page.text


def test_a_grid_that_runs_counts_what_has_not_ended() -> None:
    page = read(runs.grid(40, 20))
    assert "18 of 40 lines completed; 20 have not ended." in page.text
    assert "every five minutes" in page.text


def test_a_refused_grid_shows_its_cause_and_no_lines() -> None:
    page = read(runs.refused_grid())
    assert page.title == "grid lr-wrong: refused"
    assert "manifest: line 4" in page.text
    assert "Lines by region" not in page.text


def test_a_grid_that_failed_has_its_next_step() -> None:
    status = Status(name="FAILED", error=errors.GridFailed.__name__, cause="3 lines lack a record")
    page = read(replace(runs.grid(40), status=status))
    assert page.title.endswith(f"failed, {errors.GridFailed.__name__}")


def test_a_grid_whose_execution_is_gone_is_told_by_its_report() -> None:
    problem = {"error": errors.GridFailed.__name__, "cause": "stopped"}
    gone = replace(runs.grid(40), status=Status(name=GONE))
    assert read(gone).title == "grid lr-sweep: ended, 3 not completed"
    assert read(replace(gone, report={"problem": problem})).title.endswith(f"failed, {errors.GridFailed.__name__}")


def test_counts_come_of_the_report_where_no_record_was_read() -> None:
    page = read(replace(runs.grid(40), records=(), parameters={}))
    assert "37 of 40 lines completed." in page.text
    assert "eu-central-1" in page.text


def test_lines_that_did_not_complete_come_first_and_the_rest_is_said_to_be_elsewhere() -> None:
    facts = runs.grid(2000)
    page = read(facts)
    assert "500 lines, those that did not complete first. 1,500 other lines are not shown:" in page.text
    assert "s3://yard-home/grids/lr-sweep/results.csv has all of them" in page.text
    outcomes = re.findall(r'<td class="name (?:good|bad)">([A-Z][a-z]+)</td>', page.source)
    others = sum(one.outcome is not LineOutcome.COMPLETED for one in facts.records)
    assert len(outcomes) == 500
    assert outcomes.index(LineOutcome.COMPLETED.value) == others


def test_a_metric_is_drawn_over_each_hyperparameter_that_varies() -> None:
    pairs = [({"lr": 10.0**-one, "seed": 1, "kind": f"k{one % 2}"}, 0.1 * one) for one in range(1, 9)]
    charts = draw_parameters(pairs, "accuracy", "a")
    assert [one.title for one in charts] == ["accuracy over kind", "accuracy over lr"]
    assert len({one.key for one in charts}) == 2


def test_points_beyond_a_thousand_are_thinned_and_the_chart_says_so() -> None:
    chart = draw_parameters([({"x": float(one)}, float(one * 7 % 13)) for one in range(5000)], "y", "a")[0]
    assert 0 < chart.dots.count("M") <= MOST_DOTS
    assert chart.note == "1,000 of 5,000 points are drawn."


def test_a_choice_of_many_values_shows_the_common_ones_and_counts_the_others() -> None:
    chart = draw_parameters([({"x": f"value-{one}"}, 1.0 * one) for one in range(40)], "y", "a")[0]
    assert "28 rarer values are not shown." in chart.note
    assert len(chart.rows) == 12


def test_powers_of_ten_are_for_numbers_that_are_spread_so() -> None:
    assert choose_axis([1e-4, 1e-3, 1e-2, 1e-1], may_be_log=True).is_log
    assert not choose_axis([0.001, 0.2, 0.3, 0.4, 0.5], may_be_log=True).is_log
    assert not choose_axis([0.0, 1e-3, 1e-1], may_be_log=True).is_log


@pytest.mark.parametrize(
    ("given", "found"), [("0.5", 0.5), (3, 3.0), (True, "True"), ("nan", "nan"), ("a", "a"), (None, "None")]
)
def test_a_text_that_is_a_number_is_one(given: object, found: object) -> None:
    assert read_value(given) == found


def test_a_search_shows_its_best_trial_and_the_line_that_trains_it_again() -> None:
    page = read(runs.search(60))
    assert "The line of a manifest that trains it again" in page.text
    assert '"learning_rate":' in page.text
    assert "87.1 %" in page.text


def test_a_search_for_the_largest_value_takes_the_largest() -> None:
    facts = runs.search(20)
    most = max(float(one["value"]) for one in facts.trials if one["value"])
    assert f"{most:.6g} in trial" in read(facts).text


def test_a_search_for_the_smallest_value_takes_the_smallest() -> None:
    facts = runs.search(20)
    wanted = {**(facts.report or {}), "objective": {"metric": "loss", "direction": "minimize"}}
    least = min(float(one["value"]) for one in facts.trials if one["value"])
    assert f"{least:.6g} in trial" in read(replace(facts, report=wanted)).text


def test_a_best_trial_of_more_hyperparameters_than_a_training_may_have_shows_a_hundred() -> None:
    facts = runs.search(20)
    many = {f"hp.x{one:03d}": "1" for one in range(120)}
    text = read(replace(facts, trials=tuple({**one, **many} for one in facts.trials))).text
    assert "23 other hyperparameters in best.json" in text


def test_a_search_of_which_every_trial_failed_has_no_best_one() -> None:
    page = read(runs.failed_search())
    assert "Best trial" not in page.text
    assert "no value yet" in page.text
    assert "Why trials failed" in page.text


def test_a_search_of_thousands_shows_the_best_and_says_where_the_rest_is() -> None:
    page = read(runs.search(2000))
    assert "The best 500 trials; 1,500 other trials are not shown:" in page.text
    assert "s3://yard-home/searches/digits-search/trials.csv has all of them" in page.text
