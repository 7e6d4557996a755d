"""What an earlier search contributes: all of it to one that resumes it, its trials to one that it warms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from contract.errors import SearchFailed
from contract.metric_values import write_expression
from contract.search import Search, SearchPrefix
from searches.checking import CheckedSearch
from searches.policy import read_standing
from tests.functions.search.account import ENVIRONMENT, SEARCH, Searches, record_of
from tools.refusals.grids.yard import BUCKET
from tools.refusals.searches.yard import LEAST

STEPS = {"lr": {"float": [0.0, 1.0], "step": 0.001}}


def end(there: Searches, *, status: str = "ABORTED") -> None:
    """The search `earlier` ends."""
    there.end("earlier", status, SEARCH)


def go_on(there: Searches, name: str = "later", **given: Any) -> CheckedSearch:
    """Checks a search that resumes `earlier`, or another one."""
    return there.check({"resume": "earlier"} | given, name)


def refused(there: Searches, **given: Any) -> list[str]:
    return go_on(there, **given).problems


def numbers(search: Search) -> list[int]:
    return [one.number for one in search.earlier]


def search_of(**given: Any) -> dict[str, Any]:
    """The smallest search with these fields."""
    return LEAST | given


# resume: what goes on


def test_a_search_goes_on_with_all_that_the_other_one_learnt(there: Searches) -> None:
    old = there.settle("earlier", trials=8, patience=5, seed=3)
    there.train(old, [0.5, None])
    there.train(old, [0.7, 0.6], 2, 2)
    end(there)
    checked = go_on(there)
    assert checked.problems == []
    assert numbers(checked.search) == [0, 1, 2, 3]
    assert [one.value for one in checked.search.earlier] == [0.5, None, 0.7, 0.6]
    assert checked.search.spent_usd == pytest.approx(2.0)
    assert (checked.wanted.seed, checked.wanted.patience, checked.wanted.trials) == (3, 5, 8)
    assert (checked.search.id, checked.search.first) == ("later", ())


def test_a_search_that_ended_well_goes_on_with_more_trials(there: Searches) -> None:
    old = there.settle("earlier", trials=2)
    there.train(old, [0.5, 0.6])
    end(there, status="SUCCEEDED")
    checked = go_on(there, trials=20, parallel=2, patience=3, max_cost_usd=50, owner="bob")
    assert checked.problems == []
    wanted = checked.wanted
    assert (wanted.trials, wanted.parallel, wanted.patience, wanted.max_cost_usd) == (20, 2, 3, 50)
    assert wanted.owner == "bob"


def test_null_is_a_field_that_is_left_out(there: Searches) -> None:
    old = there.settle("earlier", patience=1, max_cost_usd=50)
    there.train(old, [0.5])
    end(there)
    checked = go_on(there, patience=None, max_cost_usd=None, trials=None)
    assert (checked.problems, checked.wanted.patience, checked.wanted.max_cost_usd) == ([], 1, 50.0)


def test_trials_of_a_round_that_was_ended_are_asked_first(there: Searches) -> None:
    """Of four that were asked one completed, one failed by itself, one was stopped and one has no record."""
    begin = [{"lr": 0.011}, {"lr": 0.012}, {"lr": 0.013}, {"lr": 0.014}, {"lr": 0.015}, {"lr": 0.016}]
    old = there.settle("earlier", begin_with=begin)
    grid = there.ask(old, begin[:4])
    there.plan(grid, 4)
    there.count(grid, [record_of(0, 0.5), record_of(1, None), record_of(2, None, outcome="Stopped")])
    there.end(grid, "ABORTED", ENVIRONMENT.machine)
    end(there)
    checked = go_on(there)
    assert checked.problems == []
    assert numbers(checked.search) == [0, 1]
    assert list(checked.search.first) == [{"lr": 0.013}, {"lr": 0.014}, {"lr": 0.015}, {"lr": 0.016}]
    assert checked.search.spent_usd == pytest.approx(0.5 * 3 + 1.75)


def test_a_round_whose_grid_was_never_started_is_asked_again_and_costs_nothing(there: Searches) -> None:
    old = there.settle("earlier")
    there.train(old, [0.5, 0.6])
    there.ask(old, [{"lr": 0.05}, {"lr": 0.06}], 2, 2, starts=False)
    end(there)
    checked = go_on(there)
    assert checked.problems == []
    assert numbers(checked.search) == [0, 1]
    assert list(checked.search.first) == [{"lr": 0.05}, {"lr": 0.06}]
    assert checked.search.spent_usd == pytest.approx(1.0)


def test_a_trial_that_a_grid_stopped_by_itself_is_told_and_not_asked_again(there: Searches) -> None:
    """A grid that ended well has ended all its trials for good."""
    old = there.settle("earlier")
    there.train(old, [None, 0.5], outcome="Stopped")
    end(there)
    checked = go_on(there)
    assert (numbers(checked.search), checked.search.first) == ([0, 1], ())


def test_numbers_do_not_collide_with_those_of_the_search_that_goes_on(there: Searches) -> None:
    old = there.settle("earlier")
    there.train(old, [0.5, 0.6])
    end(there)
    later = there.store.settle(go_on(there).search)
    grid = there.train(later, [0.7], first=2)
    standing = read_standing(later, go_on(there).wanted, there.store.rounds("later", 1))
    assert grid == "later-r1"
    assert [one.number for one in standing.own] == [0, 1, 2]
    assert [one.grid for one in standing.own] == ["earlier-r1", "earlier-r1", "later-r1"]


def test_a_search_that_was_resumed_is_resumed_again(there: Searches) -> None:
    old = there.settle("earlier", begin_with=[{"lr": 0.01}, {"lr": 0.02}, {"lr": 0.03}])
    there.ask(old, [{"lr": 0.01}], starts=False)
    end(there)
    second = there.store.settle(go_on(there, "second", trials=30).search)
    there.begin("second", SEARCH)
    assert list(second.first) == [{"lr": 0.01}, {"lr": 0.02}, {"lr": 0.03}]
    there.train(second, [0.5, 0.4])
    there.end("second", "ABORTED", SEARCH)
    third = there.check({"resume": "second"}, "third")
    assert third.problems == []
    assert numbers(third.search) == [0, 1]
    assert list(third.search.first) == [{"lr": 0.03}]
    assert (third.search.spent_usd, third.wanted.trials) == (pytest.approx(1.0), 30)
    assert third.search.given["resume"] == "second"


def test_what_warmed_a_search_warms_the_one_that_goes_on(there: Searches) -> None:
    there.train(there.settle("warmer"), [0.9])
    old = there.settle("earlier", warm_start="warmer")
    there.train(old, [0.5])
    end(there)
    checked = go_on(there)
    assert checked.problems == []
    assert numbers(checked.search) == [-1, 0]
    assert checked.search.spent_usd == pytest.approx(0.5)


def test_a_search_that_goes_on_is_not_refused_for_its_money(there: Searches) -> None:
    """Its rounds are as small as the rest pays; without a rest it reports and ends."""
    old = there.settle("earlier", parallel=7, max_cost_usd=20)
    there.train(old, [0.5] * 7)
    end(there)
    assert refused(there, max_cost_usd=5.25) == []
    assert refused(there, max_cost_usd=0.01) == []


def test_a_cap_is_refused_for_a_search_whose_cost_is_not_known(there: Searches) -> None:
    old = there.settle("earlier")
    grid = there.ask(old, [{"lr": 0.011}])
    there.plan(grid, 1, most_usd=None)
    there.count(grid, [replace(record_of(0, 0.5), cost_usd=None)])
    there.end(grid, "SUCCEEDED", ENVIRONMENT.machine)
    end(there)
    assert refused(there) == []
    (found,) = refused(there, max_cost_usd=50)
    assert found.startswith("max_cost_usd: what trials of the search that it resumes cost is not known")


# resume: what does not


def test_a_search_that_runs_is_not_resumed(there: Searches) -> None:
    there.train(there.settle("earlier"), [0.5])
    assert refused(there) == ["resume: earlier still runs; allowed: a search that has ended, or was stopped"]


@pytest.mark.parametrize("status", ["RUNNING", "PENDING_REDRIVE"])
def test_a_search_whose_last_grid_runs_is_not_resumed(there: Searches, status: str) -> None:
    old = there.settle("earlier")
    there.train(old, [0.5])
    there.train(old, [0.6], 2, 1, status=status)
    end(there)
    (found,) = refused(there)
    assert found.startswith("resume: the last round of earlier is still being ended; allowed: ")


def test_a_search_whose_last_grid_is_not_counted_is_not_resumed(there: Searches) -> None:
    old = there.settle("earlier")
    grid = there.ask(old, [{"lr": 0.05}])
    there.plan(grid, 1)
    there.end(grid, "ABORTED", ENVIRONMENT.machine)
    end(there)
    (found,) = refused(there)
    assert "is still being ended" in found
    there.count(grid, [])
    assert refused(there) == []


def test_a_search_of_which_a_round_is_gone_is_not_resumed(there: Searches) -> None:
    old = there.settle("earlier")
    there.train(old, [0.5])
    there.train(old, [0.6], 2, 1)
    end(there)
    del there.aws.s3.buckets[BUCKET].objects[SearchPrefix("earlier").questions(1)]
    with pytest.raises(SearchFailed, match="round 1 of search earlier is gone"):
        go_on(there)


@pytest.mark.parametrize(
    "field",
    ["template", "places", "search", "objective", "sampler", "seed", "begin_with", "warm_start"],
)
def test_what_made_the_trials_cannot_change(there: Searches, field: str) -> None:
    given = {
        "template": {"region": "us-east-1"},
        "places": [{}],
        "search": STEPS,
        "objective": {"metric": "loss", "direction": "minimize"},
        "sampler": "random",
        "seed": 4,
        "begin_with": [{"lr": 0.01}],
        "warm_start": "other",
    }
    there.train(there.settle("earlier"), [0.5])
    end(there)
    found = refused(there, **{field: given[field]})
    assert f"{field}: cannot change in a search that goes on; allowed: left out beside resume" in found


def test_null_does_not_change_what_cannot_change(there: Searches) -> None:
    there.train(there.settle("earlier", seed=5, sampler="random", begin_with=[{"lr": 0.01}]), [0.5])
    end(there)
    checked = go_on(there, seed=None, sampler=None, template=None, begin_with=None, search=None)
    assert checked.problems == []
    assert (checked.wanted.seed, checked.wanted.sampler.value) == (5, "random")


def test_a_wrong_field_beside_resume_is_said_beside_it(there: Searches) -> None:
    there.train(there.settle("earlier"), [0.5])
    end(there)
    assert len(refused(there, trials=0, patience="x")) == 2


@pytest.mark.parametrize("name", ["", "a b", "../earlier", "x" * 75, 7, ["earlier"]])
def test_what_is_no_name_of_a_search_is_said_alone(there: Searches, name: Any) -> None:
    (found,) = refused(there, resume=name)
    assert found.startswith("resume: ")


def test_an_unusable_search_is_said_beside_the_fields_that_cannot_change(there: Searches) -> None:
    found = refused(there, resume="none-1", seed=3)
    assert [one.split(": ")[0] for one in found] == ["seed", "resume"]


# warm start


def test_a_warm_start_lends_its_trials_without_number_or_cost(there: Searches) -> None:
    there.train(there.settle("earlier"), [0.5, None, 0.7])
    checked = there.check(search_of(warm_start="earlier"))
    assert checked.problems == []
    assert numbers(checked.search) == [-1, -1]
    assert [one.value for one in checked.search.earlier] == [0.5, 0.7]
    assert (checked.search.spent_usd, checked.search.warnings) == (0.0, ())


def test_trials_with_other_values_are_left_out_with_a_warning(there: Searches) -> None:
    there.train(there.settle("earlier"), [0.5, 0.6, 0.7])
    checked = there.check(search_of(warm_start="earlier", search={"lr": {"float": [0.0105, 0.5]}}))
    assert checked.problems == []
    assert len(checked.search.earlier) == 2
    assert checked.search.warnings == ("warm_start: 1 trials of earlier have values that this search has not",)


@pytest.mark.parametrize(
    "search",
    [
        {"lr": {"float": [0.5, 0.9]}},
        {"lr": {"choice": ["a", "b"]}},
        {"depth": {"int": [1, 9]}},
        {"lr": {"float": [0.001, 0.1]}, "depth": {"int": [1, 9]}},
    ],
    ids=["values", "kind", "name", "more"],
)
def test_a_search_with_other_parameters_warms_nothing(there: Searches, search: dict[str, Any]) -> None:
    there.train(there.settle("earlier"), [0.5, 0.6])
    (found,) = there.problems(search_of(warm_start="earlier", search=search))
    assert found.startswith(
        "warm_start: none of the 2 trials of earlier with a value has the parameters of this search"
    )


@pytest.mark.parametrize(
    "objective", [{"metric": "accuracy", "direction": "minimize"}, {"metric": "loss", "direction": "maximize"}]
)
def test_a_search_with_another_objective_warms_nothing(there: Searches, objective: dict[str, str]) -> None:
    there.train(there.settle("earlier"), [0.5])
    template = {"metrics": {"accuracy": write_expression("a"), "loss": write_expression("l")}}
    whole = search_of(warm_start="earlier", objective=objective)
    (found,) = there.problems(whole | {"template": whole["template"] | template})
    assert found.startswith("warm_start: earlier had the objective maximize accuracy")


def test_a_search_without_a_value_warms_nothing(there: Searches) -> None:
    there.train(there.settle("earlier"), [None, None])
    (found,) = there.problems(search_of(warm_start="earlier"))
    assert found.startswith("warm_start: none of the 0 trials")


def test_a_search_that_runs_warms_with_what_has_ended(there: Searches) -> None:
    old = there.settle("earlier")
    there.train(old, [0.5])
    there.ask(old, [{"lr": 0.05}], 2, 1)
    assert len(there.check(search_of(warm_start="earlier")).search.earlier) == 1


def test_a_warm_start_is_not_read_where_the_search_itself_is_wrong(there: Searches) -> None:
    (found,) = there.problems(search_of(warm_start="none-1", search={"lr": {"float": [1, 0]}}))
    assert found.startswith("search.lr.float: ")
