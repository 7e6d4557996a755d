"""The study: the same trials and the same seed make the same questions, and they are those of an Optuna that runs on."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.samplers import TPESampler
from optuna.trial import TrialState

from contract.search import Trial
from searches import study
from searches.request import SearchRequest, read
from tests.functions.search.account import request_of
from tools.refusals.searches.yard import LEAST

SPACE: dict[str, Any] = {
    "lr": {"float": [1e-5, 1.0], "log": True},
    "depth": {"int": [2, 12]},
    "act": {"choice": ["relu", "gelu", "tanh"]},
}
STEPS: dict[str, Any] = {
    "a": {"float": [0, 1], "step": 0.1},
    "b": {"int": [1, 7], "step": 2},
    "c": {"choice": ["x", 1.5]},
}


def objective(one: dict[str, Any]) -> float:
    return float(-((math.log10(one["lr"]) + 2) ** 2) - (one["depth"] - 6) ** 2 / 9 - (one["act"] != "gelu"))


def trial(number: int, parameters: dict[str, Any], value: float | None) -> Trial:
    return Trial(
        number=number,
        parameters=parameters,
        value=value,
        outcome="Stopped" if value is None else "Completed",
        reason="",
        grid="tune-7-r1",
        index=number,
    )


def ask(
    wanted: SearchRequest, trials: Sequence[Trial] = (), count: int = 4, first: Sequence[dict[str, Any]] = ()
) -> list[dict[str, Any]]:
    number = max((one.number for one in trials), default=-1) + 1
    return study.ask(wanted, trials, first, number=number, count=count)


def search(
    wanted: SearchRequest, rounds: int, *, stopped: frozenset[int] = frozenset(), first: Sequence[dict[str, Any]] = ()
) -> list[Trial]:
    """Rounds of four trials, each of which is rebuilt from the trials before it."""
    trials: list[Trial] = []
    for _ in range(rounds):
        for one in ask(wanted, trials, first=first[len(trials) :]):
            number = len(trials)
            trials.append(trial(number, one, None if number in stopped else objective(one)))
    return trials


WANTED = request_of(search=SPACE, trials=100)


# the same questions


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_equal_trials_make_equal_questions(sampler: str) -> None:
    wanted = request_of(search=SPACE, sampler=sampler, trials=100)
    trials = search(wanted, 5)
    assert ask(wanted, trials) == ask(wanted, trials)
    assert search(wanted, 5) == trials


def test_another_seed_makes_other_questions() -> None:
    assert ask(request_of(search=SPACE, seed=1)) != ask(request_of(search=SPACE, seed=2))


def test_another_round_makes_other_questions_even_from_the_same_trials() -> None:
    asked = [study.ask(WANTED, (), (), number=number, count=4) for number in (0, 4, 8)]
    assert len({json.dumps(one) for one in asked}) == 3


def test_the_order_in_which_parameters_are_written_changes_nothing() -> None:
    other = request_of(search=dict(reversed(SPACE.items())), trials=100)
    assert ask(other) == ask(WANTED)


@pytest.mark.parametrize("seed", [0, 7])
def test_an_optuna_that_keeps_its_study_asks_the_same(seed: int) -> None:
    """It gets the sampler of each round; what is rebuilt from records is nothing else than what it kept."""
    wanted = request_of(search=SPACE, seed=seed, trials=100)
    stopped = frozenset({2, 9, 13})
    rebuilt = search(wanted, 8, stopped=stopped)
    kept = optuna.create_study(direction="maximize")
    for first in range(0, 32, 4):
        kept.sampler = study._sampler(wanted, first)
        asked = [kept.ask(study.read_space(wanted)) for _ in range(4)]
        assert [one.params for one in asked] == [one.parameters for one in rebuilt[first : first + 4]]
        for number, one in enumerate(asked, first):
            if number in stopped:
                kept.tell(one, state=TrialState.FAIL)
            else:
                kept.tell(one, objective(one.params))


def test_values_come_back_from_a_manifest_as_they_were_asked() -> None:
    for sampler in ("tpe", "random", "grid"):
        wanted = request_of(search=STEPS, sampler=sampler, trials=100)
        asked = ask(wanted, count=40)
        assert json.loads(json.dumps(asked)) == asked
        assert all(study.fits(wanted, trial(0, one, 1.0)) for one in json.loads(json.dumps(asked)))


def test_trials_from_a_manifest_make_the_questions_of_those_that_were_asked() -> None:
    trials = search(WANTED, 4)
    read = [trial(one.number, json.loads(json.dumps(one.parameters)), one.value) for one in trials]
    assert ask(WANTED, read) == ask(WANTED, trials)


# what a sampler does with them


def test_a_better_value_is_looked_for_where_good_ones_were() -> None:
    best = [
        max(
            objective(one.parameters)
            for one in search(request_of(search=SPACE, seed=seed, sampler=sampler, trials=100), 12)
        )
        for sampler in ("tpe", "random")
        for seed in range(3)
    ]
    assert sum(best[:3]) > sum(best[3:])


def test_the_direction_turns_the_questions() -> None:
    wanted = request_of(search=SPACE, objective={"metric": "accuracy", "direction": "minimize"}, trials=100)
    trials = search(WANTED, 6)
    assert ask(wanted, trials) != ask(WANTED, trials)
    turned = [trial(one.number, one.parameters, -(one.value or 0)) for one in trials]
    assert ask(wanted, turned) == ask(WANTED, trials)


@pytest.mark.parametrize("outcome", ["Failed", "Stopped"])
def test_trials_without_a_value_do_not_stop_a_study(outcome: str) -> None:
    every = [replace(trial(one.number, one.parameters, None), outcome=outcome) for one in search(WANTED, 6)]
    assert len(ask(WANTED, every)) == 4


def test_a_trial_that_was_stopped_is_not_taken_for_a_good_or_a_bad_one() -> None:
    trials = search(WANTED, 6)
    stopped = trial(len(trials), trials[0].parameters, None)
    bad = trial(len(trials), trials[0].parameters, -1e9)
    assert ask(WANTED, [*trials, stopped]) != ask(WANTED, [*trials, bad])


def test_infinite_ranges_of_numbers_are_asked_within_their_bounds() -> None:
    space = {
        "a": {"float": [-1e300, 1e300]},
        "b": {"int": [-(2**53), 2**53]},
        "c": {"float": [1e-300, 1e300], "log": True},
    }
    wanted = request_of(search=space, trials=100)
    trials: list[Trial] = []
    for _ in range(6):
        for one in ask(wanted, trials):
            assert all(study._holds(study.read_space(wanted)[name], value) for name, value in one.items())
            trials.append(trial(len(trials), one, float(len(trials))))


def test_the_last_trial_of_five_thousand_is_asked() -> None:
    trials = [
        trial(one, {"lr": 10 ** -(one % 5), "depth": 2 + one % 11, "act": "relu"}, float(one % 7))
        for one in range(4999)
    ]
    assert len(ask(WANTED, trials, count=1)) == 1


# those that a person begins with


def test_parameters_that_a_person_begins_with_come_first_and_as_they_are() -> None:
    first = [{"lr": 0.5, "depth": 3, "act": "tanh"}, {"lr": 0.25, "depth": 4, "act": "relu"}]
    asked = ask(WANTED, first=first)
    assert asked[:2] == first
    assert len(asked) == 4


def test_the_sampler_adds_what_an_entry_lacks() -> None:
    asked = ask(WANTED, first=[{"depth": 3}, {}])
    assert asked[0]["depth"] == 3
    assert all(one.keys() == SPACE.keys() for one in asked)
    assert asked == ask(WANTED, first=[{"depth": 3}, {}])


def test_more_entries_than_a_round_has_wait_for_the_next_one() -> None:
    first = [{"depth": 2 + place} for place in range(7)]
    trials = search(WANTED, 2, first=first)
    assert [one.parameters["depth"] for one in trials[:7]] == [one["depth"] for one in first]


@pytest.mark.parametrize(
    ("parameters", "place"),
    [
        ({"lr": 0.0}, "lr"),
        ({"lr": 2}, "lr"),
        ({"lr": "0.1"}, "lr"),
        ({"lr": True}, "lr"),
        ({"lr": math.nan}, "lr"),
        ({"depth": 13}, "depth"),
        ({"depth": 2.5}, "depth"),
        ({"depth": None}, "depth"),
        ({"act": "elu"}, "act"),
        ({"act": ["relu"]}, "act"),
        ({"width": 3}, "width"),
    ],
)
def test_a_value_that_no_trial_could_have_is_a_misfit(parameters: dict[str, Any], place: str) -> None:
    (found,) = study.list_misfits(WANTED, parameters)
    assert found.startswith(f"{place}: ")


def test_the_ends_of_ranges_and_every_choice_fit() -> None:
    ends = [{"lr": 1e-5}, {"lr": 1}, {"depth": 2}, {"depth": 12.0}, {"act": "tanh"}, {}]
    assert [study.list_misfits(WANTED, one) for one in ends] == [[]] * len(ends)


def test_true_is_not_one_and_one_is_not_true() -> None:
    wanted = request_of(search={"a": {"choice": [True, 2]}, "b": {"choice": [1, False]}})
    assert study.list_misfits(wanted, {"a": True, "b": 1}) == []
    assert len(study.list_misfits(wanted, {"a": 1, "b": True})) == 2


# the sampler grid


def test_the_sampler_grid_asks_every_combination_once_and_then_nothing() -> None:
    wanted = request_of(search=STEPS, sampler="grid", trials=1000)
    trials: list[Trial] = []
    for _ in range(20):
        asked = ask(wanted, trials, count=7)
        trials += [trial(len(trials) + place, one, 1.0) for place, one in enumerate(asked)]
    every = itertools.product([round(one / 10, 1) for one in range(11)], [1, 3, 5, 7], ["x", 1.5])
    assert [tuple(one.parameters.values()) for one in trials] == list(every)
    assert len(trials) == study.count_combinations(wanted) == 88


def test_the_sampler_grid_does_not_ask_again_what_failed() -> None:
    wanted = request_of(search=STEPS, sampler="grid", trials=1000)
    trials = [trial(place, one, None) for place, one in enumerate(ask(wanted, count=80))]
    assert len(ask(wanted, trials, count=80)) == 8


def test_the_sampler_grid_completes_entries_so_that_nothing_comes_twice() -> None:
    """1 is 1.0, and an entry of which everything was tried gets something else."""
    wanted = request_of(search={"a": {"float": [0, 1], "step": 0.5}, "b": {"int": [1, 2]}}, sampler="grid")
    first = [{"a": 1, "b": 2.0}, {"b": 2}, {"a": 1.0}, {"a": 1}]
    asked = ask(wanted, count=5, first=first)
    assert asked == [
        {"a": 1, "b": 2.0},
        {"a": 0.0, "b": 2},
        {"a": 1.0, "b": 1},
        {"a": 0.0, "b": 1},
        {"a": 0.5, "b": 1},
    ]
    trials = [trial(place, one, 1.0) for place, one in enumerate(asked)]
    assert ask(wanted, trials) == [{"a": 0.5, "b": 2}]
    assert ask(wanted, [*trials, trial(5, {"a": 0.5, "b": 2}, 1.0)], first=[{"a": 1}]) == []


def test_trials_of_another_search_are_not_in_the_way_of_the_sampler_grid() -> None:
    wanted = request_of(search=STEPS, sampler="grid", trials=1000)
    theirs = [trial(-1, one, 1.0) for one in ask(wanted, count=10)]
    assert study.ask(wanted, theirs, (), number=0, count=10) == ask(wanted, count=10)


def test_a_grid_of_very_many_combinations_is_counted_and_asked_without_making_them() -> None:
    space = {"a": {"int": [0, 2**53]}, "b": {"int": [-(2**53), 2**53]}, "c": {"float": [0, 1], "step": 1e-6}}
    wanted = request_of(search=space, sampler="grid", trials=5000, parallel=5000)
    assert study.count_combinations(wanted) > 2**107
    asked = ask(wanted, count=5000)
    assert asked[-1] == {"a": 0, "b": -(2**53), "c": 0.004999}


def test_other_samplers_have_no_end() -> None:
    assert study.count_combinations(WANTED) == math.inf


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ({"float": [0, 1], "step": 0.1}, [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]),
        ({"float": [0, 1], "step": 0.3}, [0, 0.3, 0.6, 0.9]),
        ({"float": [-0.5, 0.5], "step": 0.5}, [-0.5, 0, 0.5]),
        ({"float": [1e-13, 4e-13], "step": 1e-13}, [1e-13, 2e-13, 3e-13, 4e-13]),
        ({"float": [1e6, 3e6], "step": 1e6}, [1e6, 2e6, 3e6]),
        ({"int": [2, 9], "step": 3}, [2, 5, 8]),
        ({"int": [2, 8], "step": 6.0}, [2, 8]),
        ({"int": [-1, 1]}, [-1, 0, 1]),
    ],
)
def test_steps_reach_every_value_that_a_person_would_write(given: dict[str, Any], values: list[float]) -> None:
    wanted = request_of(search={"x": given}, sampler="grid", trials=100)
    assert [one["x"] for one in ask(wanted, count=100)] == values
    assert study.count_combinations(wanted) == len(values)


@pytest.mark.parametrize("sampler", ["tpe", "random", "grid"])
def test_steps_warn_of_nothing(sampler: str) -> None:
    space = {"x": {"float": [0, 1], "step": 0.3}, "n": {"int": [2, 9], "step": 3}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ask(request_of(search=space, sampler=sampler, trials=100), count=12)


# importance


def test_the_parameter_that_matters_has_the_largest_share() -> None:
    wanted = request_of(search={"lr": {"float": [0, 1]}, "noise": {"float": [0, 1]}}, sampler="random", trials=100)
    trials = [trial(place, one, one["lr"] ** 2) for place, one in enumerate(ask(wanted, count=60))]
    found = study.rank_importance(wanted, trials)
    assert next(iter(found)) == "lr"
    assert found["lr"] > 2 * found["noise"]


@pytest.mark.parametrize(
    "values", [[], [1.0] * 9, [1.0] * 9 + [None] * 50], ids=["none", "nine", "nine that have a value"]
)
def test_with_few_values_importance_is_not_known(values: list[float | None]) -> None:
    asked = ask(WANTED, count=len(values)) if values else []
    trials = [trial(place, one, value) for place, (one, value) in enumerate(zip(asked, values, strict=True))]
    assert study.rank_importance(WANTED, trials) == {}


def test_where_all_values_are_equal_importance_breaks_nothing() -> None:
    trials = [trial(place, one, 1.0) for place, one in enumerate(ask(WANTED, count=20))]
    assert sum(study.rank_importance(WANTED, trials).values()) in (0, pytest.approx(1, abs=0.01))


def test_the_sampler_learns_of_the_whole_round_at_once() -> None:
    assert isinstance(study._sampler(WANTED, 0), TPESampler)


# whatever a person may write


@settings(max_examples=60, deadline=None)
@given(
    low=st.floats(-1e9, 1e9),
    width=st.floats(1e-9, 1e9),
    parts=st.one_of(st.none(), st.floats(1.0, 1e5)),
    seed=st.integers(0, 9),
    sampler=st.sampled_from(["tpe", "random", "grid"]),
)
def test_a_range_that_is_accepted_holds_whatever_is_asked_of_it(
    low: float, width: float, parts: float | None, seed: int, sampler: str
) -> None:
    """Through JSON and back, as Ask and Tell see it."""
    one = {"float": [low, low + width], **({"step": width / parts} if parts else {})}
    wanted, _, problems = read({**LEAST, "search": {"lr": one}, "sampler": sampler, "seed": seed, "trials": 12})
    if problems:
        return
    told = list[Trial]()
    for number in range(3):
        found = json.loads(json.dumps(ask(wanted, told)))
        for parameters in found:
            assert not study.list_misfits(wanted, parameters)
            told.append(trial(len(told), parameters, float(number)))


def test_values_of_a_person_are_written_as_the_sampler_writes_them() -> None:
    space = {
        "a": {"int": [0, 4]},
        "b": {"float": [0, 1], "step": 0.1},
        "c": {"float": [0, 1]},
        "d": {"choice": [1, "1"]},
    }
    wanted = read({**LEAST, "search": space})[0]
    found = study.write_values(wanted, {"a": 2.0, "b": 0.30000000000000004, "c": 1, "d": "1"})
    assert json.dumps(found) == '{"a": 2, "b": 0.3, "c": 1.0, "d": "1"}'
