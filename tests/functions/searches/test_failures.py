"""What trials that failed teach the sampler: to keep away, if they failed by themselves; nothing, if something else ended them."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from statistics import mean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.grid import LineOutcome, Record
from contract.search import Direction, SearchPrefix, Trial
from searches import study
from searches.policy import SearchRound, find_best, read_standing, read_trial
from searches.reporting import report
from searches.request import SearchRequest, read
from tests.functions.search.account import Searches, record_of, request_of

SPACE: dict[str, Any] = {"batch": {"int": [8, 512], "log": True}, "lr": {"float": [1e-5, 0.1], "log": True}}
WANTED = request_of(search=SPACE, trials=100)
ROUND = 4


def trial(number: int, batch: int, value: float | None = None, *, outcome: str = "", own: bool | None = None) -> Trial:
    return Trial(
        number=number,
        parameters={"batch": batch, "lr": 0.001},
        value=value,
        outcome=outcome or ("Failed" if value is None else "Completed"),
        reason="" if value is not None else "out of memory",
        grid="tune-7-r1",
        index=number,
        own_failure=own,
    )


KNOWN = [trial(number, 10 + 20 * number, number / 20) for number in range(20)]


def ask(trials: Iterable[Trial], wanted: SearchRequest = WANTED) -> list[dict[str, Any]]:
    return study.ask(wanted, tuple(trials), (), number=40, count=ROUND)


def learn(record: Record | None) -> bool:
    """Whether the sampler learns from what became of a line."""
    done = SearchRound(number=1, grid="g", questions=[{"hyperparameters": {"lr": 0.01}}], records=[record], most_usd=[])
    return read_trial(request_of(), done, 0, 7).failed_by_itself


# which failures count


@pytest.mark.parametrize(
    ("record", "learns"),
    [
        (record_of(0, 0.75), False),
        (record_of(0, None, own_failure=True), True),
        (record_of(0, None), True),  # of an older version
        (record_of(0, None, own_failure=False), False),
        (record_of(0, None, outcome=LineOutcome.STOPPED), False),
        (record_of(0, None, outcome=LineOutcome.STOPPED, own_failure=True), True),  # its time was over
        (record_of(0, None, outcome=LineOutcome.REFUSED), False),
        (record_of(0, 0.5, metrics={}), True),
        (record_of(0, 0.5, metrics={"accuracy": math.nan}), True),
        (None, False),
    ],
)
def test_a_trial_teaches_by_its_failure_only_where_the_training_itself_is_the_cause(
    record: Record | None, learns: bool
) -> None:
    assert learn(record) is learns


@pytest.mark.parametrize("direction", list(Direction))
def test_a_failed_trial_is_behind_the_worst_that_was_seen_and_behind_no_other(direction: Direction) -> None:
    failed = [trial(20, 480), trial(21, 500)]
    *same, one, other = study.judge_failures([*KNOWN, *failed], direction)
    worst = 0.95 if direction is Direction.MINIMIZE else 0.0
    assert same == KNOWN
    assert one.value == other.value != worst
    assert one.value == pytest.approx(worst, abs=1e-9)
    assert find_best([*KNOWN, one], direction) == find_best(KNOWN, direction)
    assert direction.is_better(worst, one.value or 0)


def test_a_trial_that_something_else_ended_changes_no_question() -> None:
    other = [trial(20, 480, outcome="Stopped"), trial(21, 500, own=False), trial(22, 510, outcome="Refused")]
    assert ask([*KNOWN, *other]) == ask([*KNOWN, *(replace(one, parameters=KNOWN[0].parameters) for one in other)])
    assert ask([*KNOWN, *other]) != ask([*KNOWN, *(replace(one, outcome="Failed", own_failure=True) for one in other)])


def test_until_a_trial_has_a_value_failures_teach_nothing() -> None:
    """Some of equal trials would be the good ones, and the search would stay where everything fails."""
    failed = [trial(number, 400 + number) for number in range(12)]
    assert study.judge_failures(failed, Direction.MINIMIZE) == failed
    assert ask(failed) == ask(trial(number, 8 + number) for number in range(12))


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.one_of(st.none(), st.floats(-1e300, 1e300)), max_size=60),
    direction=st.sampled_from(list(Direction)),
)
def test_no_trial_that_failed_is_ever_among_the_good_ones(values: list[float | None], direction: Direction) -> None:
    trials = [trial(number, 8 + number, value) for number, value in enumerate(values)]
    judged = study.judge_failures(trials, direction)
    good = study._count_good(trials, judged)
    if good is None:
        assert judged == trials
        return
    learnt = [one for one in judged if one.value is not None]
    best = sorted(learnt, key=lambda one: one.value or 0.0, reverse=direction is Direction.MAXIMIZE)[:good]
    assert good >= 1
    assert all(trials[one.number].value is not None for one in best)


def test_the_only_trial_with_a_value_is_looked_at_more_closely_than_many_that_failed() -> None:
    trials = [*(trial(number, 300 + 10 * number) for number in range(20)), trial(20, 20, 0.5)]
    for number in range(20, 60, ROUND):
        asked = study.ask(WANTED, trials, (), number=number, count=ROUND)
        assert mean(one["batch"] for one in asked) < 200


# what people see


def test_no_failed_trial_is_shown_with_a_value(there: Searches) -> None:
    search = there.settle(trials=8)
    there.train(search, [0.5, None, 0.7, None])
    wanted, standing = (
        read(search.given)[0],
        read_standing(search, read(search.given)[0], there.store.rounds(search.id, 1)),
    )
    study.ask(wanted, standing.trials, (), number=4, count=4)
    report(there.env, there.store, search, "All is told.", None)
    rows = list(csv.DictReader(io.StringIO(there.text(SearchPrefix(search.id).trials))))
    assert [one["value"] for one in rows] == ["0.5", "", "0.7", ""]
    told = json.loads(there.text(SearchPrefix(search.id).report))
    assert (told["with_value"], told["best"]["metric"], told["history"][0]["best"]) == (2, {"accuracy": 0.7}, 0.7)


def test_failures_say_nothing_of_how_much_a_parameter_matters() -> None:
    failed = [trial(number, 500) for number in range(20, 30)]
    assert study.rank_importance(WANTED, [*KNOWN, *failed]) == study.rank_importance(WANTED, KNOWN) != {}
    assert study.rank_importance(WANTED, [*KNOWN[:9], *failed]) == {}


# measured


def fit(one: dict[str, Any]) -> float | None:
    """A loss that falls with the batch, to the edge of memory: the best trial lies at it."""
    return None if one["batch"] > 180 else (math.log10(one["lr"]) + 3) ** 2 - math.log2(one["batch"])


def fit_whole(one: dict[str, Any]) -> float | None:
    rest = (math.log10(one["lr"]) + 2) ** 2 / 5 + 0.3 * (one["act"] != "b")
    return None if one["batch"] > 48 else rest - one["batch"] / 48


def fit_product(one: dict[str, Any]) -> float | None:
    used = one["batch"] * one["depth"]
    return None if used > 2400 else 0.3 * (math.log10(one["lr"]) + 3) ** 2 + 1 / math.log(2 + used)


def fit_little(one: dict[str, Any]) -> float | None:
    """More than half of the space is beyond the edge."""
    used = one["x"] * one["y"]
    return None if used > 0.2 else 0.1 * (math.log10(one["lr"]) + 3) ** 2 - 5 * used


LR = {"float": [1e-5, 0.1], "log": True}
EDGES: dict[str, tuple[dict[str, Any], Callable[[dict[str, Any]], float | None]]] = {
    "one": (SPACE, fit),
    "whole": (
        {"batch": {"int": [1, 64]}, "lr": {"float": [1e-5, 1], "log": True}, "act": {"choice": ["a", "b", "c"]}},
        fit_whole,
    ),
    "product": (SPACE | {"depth": {"int": [2, 32]}}, fit_product),
    "little": ({"x": {"float": [0, 1]}, "y": {"float": [0, 1]}, "lr": LR}, fit_little),
}
SEEDS = range(12)


def search_edge(edge: str, sampler: str, seed: int, sign: int, *, own: bool = True) -> tuple[int, float]:
    """Returns how many of 40 trials failed, and the least loss."""
    space, loss = EDGES[edge]
    direction = "minimize" if sign > 0 else "maximize"
    wanted = request_of(
        search=space, sampler=sampler, seed=seed, trials=40, objective={"metric": "accuracy", "direction": direction}
    )
    trials: list[Trial] = []
    while len(trials) < 40:
        for one in study.ask(wanted, trials, (), number=len(trials), count=ROUND):
            found = loss(one)
            made = trial(len(trials), 0, None if found is None else sign * found, own=own)
            trials.append(replace(made, parameters=one))
    losses = [sign * one.value for one in trials if one.value is not None]
    return 40 - len(losses), min(losses)


@pytest.mark.parametrize("sign", [1, -1], ids=["minimize", "maximize"])
@pytest.mark.parametrize("edge", EDGES)
def test_at_an_edge_of_memory_fewer_trials_fail_than_at_random_and_the_best_is_better(edge: str, sign: int) -> None:
    tpe, chance = ([search_edge(edge, sampler, seed, sign) for seed in SEEDS] for sampler in ("tpe", "random"))
    assert mean(failed for failed, _ in tpe) <= mean(failed for failed, _ in chance)
    assert mean(best for _, best in tpe) < mean(best for _, best in chance)


def test_without_what_failures_teach_most_trials_at_an_edge_fail() -> None:
    """What is measured above is not chance: failures of machines, which teach nothing, leave the sampler at the edge."""
    unaware = [search_edge("one", "tpe", seed, 1, own=False)[0] for seed in SEEDS]
    aware = [search_edge("one", "tpe", seed, 1)[0] for seed in SEEDS]
    assert mean(unaware) > 2 * mean(aware)
