"""Searches under rough weather: killed at any call, told late and twice, with failures, refusals and lost answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contract.search import SearchPrefix
from search_cleanup.handler import handler as cleanup
from tests.properties.rounds import numbers
from tests.properties.search_world import CALM, REQUEST, SearchWorld, Weather, world
from tools.refusals.grids.yard import BUCKET

SEEDS = numbers(12, quick=3)
ROUGH = Weather()
SHORT = {**REQUEST, "trials": 8}
HARSH = Weather(killed=0.5, twice=0.5, again=0.3, lost=0.1, throttled=0.2)


@pytest.fixture(scope="module")
def undisturbed() -> SearchWorld:
    with pytest.MonkeyPatch.context() as patch, world(patch) as found:
        assert found.run() == "done"
        return found


@pytest.fixture(scope="module")
def short() -> SearchWorld:
    """An undisturbed one of few trials."""
    with pytest.MonkeyPatch.context() as patch, world(patch, given=SHORT) as found:
        assert found.run() == "done"
        return found


@pytest.mark.parametrize("weather", [ROUGH, HARSH], ids=["rough", "harsh"])
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_befalls_a_search_it_asks_trains_and_reports_the_same(
    monkeypatch: pytest.MonkeyPatch, undisturbed: SearchWorld, seed: int, weather: Weather
) -> None:
    with world(monkeypatch, seed=seed, weather=weather) as found:
        assert found.run() == "done"
        assert found.questions() == undisturbed.questions()
        assert found.trained == undisturbed.trained
        assert found.rows() == undisturbed.rows()
        assert {name: one for name, one in found.report().items() if name != "reported_at"} == {
            name: one for name, one in undisturbed.report().items() if name != "reported_at"
        }


@pytest.mark.parametrize("action", ["ask", "tell", "report"])
@pytest.mark.parametrize(
    "calls", [*range(0, 45, 9), *(pytest.param(one, marks=pytest.mark.at_length) for one in range(0, 45, 3) if one % 9)]
)
def test_a_step_that_is_killed_before_any_call_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, short: SearchWorld, calls: int, action: str
) -> None:
    with world(monkeypatch, given=SHORT, killed_at={action: calls}) as found:
        assert found.run() == "done"
        assert found.questions() == short.questions()
        assert found.trained == short.trained
        assert found.rows() == short.rows()


def test_a_round_that_costs_more_than_the_rest_since_prices_rose_ends_the_search_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with world(monkeypatch, given={**REQUEST, "max_cost_usd": 15.0}) as found:
        train = found._train

        def raise_prices() -> str:
            if len(found.trained) == 4:
                found.account.prices.trainings["ml.g5.xlarge"] *= 3
            return train()

        found._train = raise_prices  # type: ignore[method-assign]
        assert found.run() == "done"
        assert found.report()["why"] == "What is left of max_cost_usd pays no further round."
        assert len(found.trained) == 4
        assert found.cost_usd <= 15.0


def test_every_trial_is_trained_once_and_told_once(undisturbed: SearchWorld) -> None:
    assert set(undisturbed.trained.values()) == {1}
    assert [int(row["trial"]) for row in undisturbed.rows()] == list(range(REQUEST["trials"]))
    told = {f"{row['grid']}/{row['index']}" for row in undisturbed.rows()}
    assert told == undisturbed.trained.keys()


def test_failed_and_silent_and_refused_trials_are_told_with_their_reasons(undisturbed: SearchWorld) -> None:
    without = [row for row in undisturbed.rows() if not row["value"]]
    assert without
    assert all(row["reason"] for row in without)
    assert {row["status"] for row in without} >= {"Failed", "Completed"}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_search_never_costs_more_than_its_cap(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    cap = 9.0 + seed
    with world(
        monkeypatch, seed=seed, weather=ROUGH, fates=seed, given={**REQUEST, "trials": 60, "max_cost_usd": cap}
    ) as found:
        assert found.run() == "done"
        report = found.report()
        assert found.cost_usd <= report["cost_usd"] <= cap
        assert "of max_cost_usd are left" in report["why"]
        assert report["trials"] < 60


def test_the_rounds_of_a_search_with_a_cap_become_as_small_as_the_rest_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    with world(monkeypatch, given={**REQUEST, "trials": 60, "max_cost_usd": 9.0}) as found:
        assert found.run() == "done"
        sizes = [len(one) for one in found.questions()]
        assert sizes[0] == 4
        assert sizes[-1] == 1
        assert sorted(sizes, reverse=True) == sizes


@pytest.mark.parametrize("steps", range(1, 9))
def test_a_search_that_is_stopped_after_any_step_leaves_no_grid_and_can_be_resumed(
    monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    with world(monkeypatch, held="find-r3", given={**REQUEST, "trials": 12}) as found:
        executions = found.account.states.executions
        assert found.run(steps) == "aborted"
        found.account.queue.feed(lambda event: cleanup(event, None))
        found.account.queue.put(json.dumps({"detail": executions.detail(found.execution)}))
        found.account.clock.run(3600)
        assert [one.name for one in executions.known.values() if one.status == "RUNNING"] == []
        assert found.report()["problem"]["cause"] == "no longer needed"
        again = SearchWorld(account=found.account, name="again", given={"resume": "find"})
        assert again.run() == "done"
        asked = [json.dumps(one) for some in (*found.questions(), *again.questions()) for one in some]
        assert len(again.rows()) == 12
        assert len(set(asked)) == 12
        trained = {f"{row['grid']}/{row['index']}" for row in again.rows()}
        assert trained == set(found.trained) | set(again.trained)


@pytest.mark.parametrize("cap", [9.0, 12.0, 14.0, 20.0])
def test_dear_places_do_not_keep_cheap_ones_from_being_paid(monkeypatch: pytest.MonkeyPatch, cap: float) -> None:
    """Four trials of about $0.88 and four of $3.50, in turn; no round is refused for its cost."""
    cheap, dear = {"max_hours": 0.5}, {"max_hours": 2}
    given = {**REQUEST, "places": [*[cheap] * 4, *[dear] * 4], "trials": 40, "max_cost_usd": cap}
    with world(monkeypatch, given=given) as found:
        assert found.run() == "done"
        assert found.report()["cost_usd"] <= cap
        assert "one more trial could cost" in found.report()["why"]
        assert len(found.rows()) == len(found.trained) > 4


def test_a_cap_that_pays_no_first_round_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with world(monkeypatch, given={**REQUEST, "max_cost_usd": 5.0}) as found:
        assert found.run() == "failed"
        assert found.problem is not None
        assert "max_cost_usd: 5.00 is less than 7.00" in found.problem["cause"]
        assert not found.trained
        assert found.account.s3.read(BUCKET, SearchPrefix("find").description) is None


def test_a_round_that_fails_as_a_whole_ends_the_search_with_its_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    with world(monkeypatch, weather=Weather(**{**vars_of(CALM), "failed": 1.0, "refused": 0.0})) as found:
        assert found.run() == "failed"
        assert found.problem is not None
        assert found.problem["cause"].splitlines() == [
            "All 4 trials of round 1 failed.",
            "- 4 trials: AlgorithmError in <training>",
        ]
        assert len(found.trained) == 4
        assert found.report()["best"] is None


def test_a_search_whose_first_round_plan_refuses_fails_with_plans_words(monkeypatch: pytest.MonkeyPatch) -> None:
    with world(monkeypatch) as found:
        closed = found._train

        def close() -> str:
            found.account.ecr["eu-central-1"].repositories.clear()
            return closed()

        found._train = close  # type: ignore[method-assign]
        assert found.run() == "failed"
        assert found.problem is not None
        assert "The grid of round 1" in found.problem["cause"]
        assert "InvalidRequest" in found.problem["cause"]
        assert not found.trained


def test_patience_ends_a_search_that_finds_nothing_better(monkeypatch: pytest.MonkeyPatch) -> None:
    with world(monkeypatch, given={**REQUEST, "trials": 60, "patience": 2}) as found:
        assert found.run() == "done"
        report = found.report()
        best = [one["best"] for one in report["history"]]
        assert report["why"] == "2 rounds brought nothing better (patience)."
        assert best[-1] == best[-2] == best[-3]


def test_the_sampler_grid_tries_every_combination_once_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    space = {
        "lr": {"float": [0, 0.02], "step": 0.01},
        "depth": {"int": [4, 6], "step": 2},
        "act": {"choice": ["relu", "gelu"]},
    }
    with world(
        monkeypatch, weather=ROUGH, given={**REQUEST, "search": space, "sampler": "grid", "parallel": 5}
    ) as found:
        assert found.run() == "done"
        asked = [tuple(sorted(one.items())) for some in found.questions() for one in some]
        assert len(asked) == len(set(asked)) == 12


def test_a_stranger_that_has_the_name_of_a_round_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    with world(monkeypatch) as found:
        taken = found.account.states.executions.begin("find-r2", ENV_MACHINE)
        found.account.states.executions.end(taken, "SUCCEEDED")
        assert found.run() == "failed"
        assert found.problem is not None
        assert "was started by something else" in found.problem["cause"]
        assert {one.partition("/")[0] for one in found.trained} == {"find-r1"}
        assert found.report()["trials"] == 8


def test_a_name_that_another_search_has_had_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with world(monkeypatch) as found:
        assert found.run() == "done"
        again = SearchWorld(account=found.account, name="find")
        again._describe = lambda: {"arn": again.execution.arn, "name": "find", "started_at": "2027-06-01T08:00:00.000Z"}  # type: ignore[method-assign]
        assert again.run() == "failed"
        assert again.problem is not None
        assert "is the name of a search of another execution" in again.problem["cause"]


def vars_of(weather: Weather) -> dict[str, Any]:
    return {name: getattr(weather, name) for name in weather.__dataclass_fields__}


ENV_MACHINE = "arn:aws:states:eu-central-1:111122223333:stateMachine:yard-grid"
