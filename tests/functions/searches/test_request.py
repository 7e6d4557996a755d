"""The input of a search: what is accepted, what is kept of an input that is wrong, and the line that trains a trial."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contract.metric_values import write_expression
from contract.search import MOST_TRIALS
from searches.checking import check
from searches.request import PLACEHOLDERS, Sampler, read, schema, write_line
from tests.functions.search.account import Searches, request_of
from tools.refusals.searches.yard import JOB, LEAST, execution, template

EXAMPLE = Path(__file__).parents[3] / "examples" / "search" / "search.json"
LR = {"float": [0.001, 0.1]}


def problems(**given: Any) -> list[str]:
    return read(LEAST | given)[2]


def examples() -> dict[str, Any]:
    """The first example of each field of the schema that has some."""
    return {name: one["examples"][0] for name, one in schema()["properties"].items() if "examples" in one}


# what is accepted


def test_the_examples_of_the_schema_make_a_search() -> None:
    wanted, wrong, found = read(examples())
    assert (wrong, found) == (frozenset(), [])
    assert wanted.begin_with == [{"lr": 0.001, "depth": 4}]


def test_the_schema_wants_what_a_search_cannot_do_without() -> None:
    found = schema()
    assert set(found["required"]) == set(PLACEHOLDERS)
    assert found["additionalProperties"] is False


def test_the_example_that_people_copy_makes_a_search() -> None:
    assert read(json.loads(EXAMPLE.read_text()))[2] == []


def test_a_search_with_everything_is_accepted_whole(there: Searches) -> None:
    given = {
        "places": [{"region": "eu-central-1"}, {"region": "us-east-1", "max_hours": 2}],
        "search": {
            "lr": {"float": [0.00001, 0.1], "log": True},
            "depth": {"int": [2, 8], "step": 2},
            "act": {"choice": ["relu", "gelu", 3, True]},
        },
        "parallel": 2,
        "max_cost_usd": 100,
        "sampler": "random",
        "seed": 2**32 - 1,
        "begin_with": [{"lr": 0.001, "act": True}, {}],
        "patience": 1,
        "owner": "ada@example.com",
    }
    assert there.problems(LEAST | given) == []


def test_a_template_of_jobs_is_accepted(there: Searches) -> None:
    given = {"template": {**JOB, "max_cost_usd": 2}, "objective": {"metric": "metric", "direction": "minimize"}}
    assert there.problems(LEAST | given | {"max_cost_usd": 8}) == []


def test_a_metric_that_the_search_would_misread_is_kept_as_a_warning_of_it_and_said_once(there: Searches) -> None:
    misread = {"accuracy": "accuracy=([0-9.]+)"}
    whole = LEAST | {"template": template(metrics=misread), "places": [{}, {"metrics": misread}]}
    found = check(whole, execution("tune-7"), there.env, there.store)
    assert found.problems == []
    assert [one.partition(": ")[0] for one in found.search.warnings] == [
        "template.metrics.accuracy",
        "places.1.metrics.accuracy",
    ]


def test_places_may_differ_in_their_backend(there: Searches) -> None:
    places = [{"metrics": {"metric": write_expression("m")}}, {**JOB, "instance_type": None, "region": None}]
    given = {"places": places, "objective": {"metric": "metric", "direction": "minimize"}}
    assert there.problems(LEAST | given) == []


def test_whole_numbers_may_be_written_as_fractions_and_null_is_a_field_left_out() -> None:
    wanted = request_of(trials=8.0, parallel=2.0, seed=3.0, patience=None, owner=None, search={"n": {"int": [1.0, 9]}})
    assert (wanted.trials, wanted.parallel, wanted.seed, wanted.patience) == (8, 2, 3, None)
    assert wanted.search["n"].int_ == [1, 9]


def test_the_most_trials_of_the_fewest_rounds_are_accepted() -> None:
    assert problems(trials=MOST_TRIALS, parallel=5) == []
    assert problems(trials=1, parallel=1000) == []


def test_the_narrowest_ranges_are_accepted() -> None:
    ranges = {"a": {"float": [1, 1.0000001]}, "b": {"int": [0, 1]}, "c": {"float": [0, 1], "step": 1}}
    assert problems(search=ranges) == []


def test_a_pruner_of_null_is_no_pruner() -> None:
    assert problems(pruner=None) == []


# what is not


@pytest.mark.parametrize("given", [None, 3, "text", [], [LEAST], True])
def test_what_is_no_object_is_one_line(given: Any) -> None:
    wanted, wrong, found = read(given)
    assert len(found) == 1
    assert "is not an object" in found[0]
    assert wrong == frozenset(PLACEHOLDERS)
    assert wanted.search == {}


def test_the_right_fields_of_a_wrong_input_are_kept_so_that_they_are_checked_too() -> None:
    given = LEAST | {"trials": "x", "parallel": 7, "sampler": "random", "begin_with": 3}
    wanted, wrong, found = read(given)
    assert wrong == {"trials", "begin_with"}
    assert (wanted.parallel, wanted.sampler, wanted.begin_with) == (7, Sampler.RANDOM, [])
    assert len(found) == 2


def test_the_right_parameters_beside_a_wrong_one_are_kept() -> None:
    wanted, wrong, _ = read(LEAST | {"search": {"lr": LR, "depth": {"int": [3, 2]}, "act": {"choise": ["a", "b"]}}})
    assert wrong == {"search"}
    assert set(wanted.search) == {"lr"}


def test_no_trial_is_missed_where_their_number_is_wrong() -> None:
    """The stand-in of `trials` is 1, which five entries do not exceed."""
    found = problems(trials="many", begin_with=[{"lr": 0.01}] * 5)
    assert len(found) == 1
    assert found[0].startswith("trials: ")


def test_a_wrong_parallel_makes_no_rounds() -> None:
    found = problems(trials=5000, parallel="4")
    assert len(found) == 1
    assert found[0].startswith("parallel: ")


def test_each_reason_is_said_once() -> None:
    found = problems(search={"lr": LR, "a": {"float": [1, 1]}, "b": {"float": [1, 1]}}, trials=0, pruner="x")
    assert len(found) == len(set(found)) == 4


def test_an_unknown_field_that_is_like_no_other_has_no_hint() -> None:
    (found,) = problems(zebra=1)
    assert "did you mean" not in found
    assert found.startswith("zebra: there is no such field; allowed: template, ")


@pytest.mark.parametrize("given", [{"depth": 3}, {"depth": {"hyperparameters": {}}}, {"hyperparameters": {"depth": 3}}])
def test_a_template_that_does_not_set_a_parameter_is_not_blamed_for_it(given: dict[str, Any]) -> None:
    found = problems(search={"lr": LR}, template=template(**given))
    assert found == []


def test_a_place_that_sets_a_parameter_is_named(there: Searches) -> None:
    found = there.problems(LEAST | {"places": [{"hyperparameters": {"lr": 0.1}}]})
    assert "search.lr: places.0.hyperparameters sets it too; allowed: one of them" in found


def test_what_is_wrong_with_the_template_is_said_beside_what_is_wrong_with_the_search(there: Searches) -> None:
    given = {"template": template(image="images:v9", volume_gb=0, colour=1), "trials": 5001, "seed": "x"}
    found = there.problems(LEAST | given)
    assert [one.split(": ")[0] for one in found] == [
        "trials",
        "seed",
        "template.volume_gb",
        "template.colour",
        "template.image",
    ]


def test_a_cap_is_held_against_the_places_of_the_first_round(there: Searches) -> None:
    """Four trials: two of $1.75, two of $8.88."""
    places = [{"region": "eu-central-1"}, {"instance_type": "ml.g5.12xlarge"}]
    assert there.problems(LEAST | {"places": places, "max_cost_usd": 30}) == []
    (found,) = there.problems(LEAST | {"places": places, "max_cost_usd": 20})
    assert found.startswith("max_cost_usd: 20.00 is less than 21.25")


def test_a_cap_is_not_held_against_more_trials_than_there_are(there: Searches) -> None:
    assert there.problems(LEAST | {"trials": 1, "max_cost_usd": 1.75}) == []


def test_a_check_changes_nothing_and_starts_nothing(there: Searches) -> None:
    there.aws.calls.clear()
    there.problems(LEAST)
    assert there.aws.changes == []


# the line that trains a trial


def test_a_line_has_the_template_its_place_and_all_hyperparameters() -> None:
    wanted = request_of(
        template=template(hyperparameters={"epochs": 3}), places=[{"region": "us-east-1"}, {"volume_gb": 50}]
    )
    line = write_line(wanted, 1, {"lr": 0.01})
    assert line == template(volume_gb=50, hyperparameters={"epochs": 3, "lr": 0.01})
    assert write_line(wanted, 2, {"lr": 0.01})["region"] == "us-east-1"


def test_trials_take_the_places_in_turn_over_all_rounds() -> None:
    wanted = request_of(places=[{"region": name} for name in ("eu-central-1", "us-east-1", "us-west-2")])
    regions = [write_line(wanted, number, {})["region"] for number in range(7)]
    assert regions == ["eu-central-1", "us-east-1", "us-west-2"] * 2 + ["eu-central-1"]


def test_a_line_changes_neither_template_nor_parameters() -> None:
    wanted, parameters = request_of(), {"lr": 0.01}
    write_line(wanted, 0, parameters)["hyperparameters"]["lr"] = 9
    assert parameters == {"lr": 0.01}
    assert "hyperparameters" not in wanted.template


def nest(depth: int) -> Any:
    found: Any = 1
    for _ in range(depth):
        found = [found]
    return found


DEEP = pytest.param(nest(100_000), "nested too deeply", marks=pytest.mark.at_length, id="deeper than any limit")


@pytest.mark.parametrize(("value", "why"), [("\ud800", "is not valid Unicode"), DEEP])
def test_what_no_file_can_keep_is_refused_and_not_met_later(there: Searches, value: Any, why: str) -> None:
    whole = LEAST | {"template": LEAST["template"] | {"hyperparameters": {"note": value}}}
    found = check(whole, execution("tune-7"), there.env, there.store).problems
    assert [one for one in found if why in one]
