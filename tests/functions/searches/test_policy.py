"""What a round's records say of its trials, and whether a search goes on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from contract.grid import LineOutcome, Record
from contract.search import Direction, Search, Trial
from searches.policy import (
    MOST_REASON,
    SHOWN,
    SearchRound,
    SearchState,
    decide,
    find_best,
    group_reasons,
    is_unaffordable,
    read_standing,
    read_trial,
    rest_usd,
)
from searches.request import SearchRequest
from tests.functions.search.account import record_of, request_of
from tools.refusals.searches.yard import LEAST

SEARCH = Search(
    id="tune-7", deployment="yard", execution="arn:tune-7", started_at="2026-11-21T10:00:00.000Z", given=LEAST
)
WANTED = request_of(trials=100)
MINIMIZE = {"metric": "accuracy", "direction": "minimize"}


def round_of(
    values: Sequence[float | None], number: int = 1, most_usd: float | None = 1.75, **changes: Any
) -> SearchRound:
    """A round whose grid ended with these values; None is a trial that failed."""
    grid = f"tune-7-r{number}"
    return SearchRound(
        number=number,
        grid=grid,
        questions=[{"hyperparameters": {"lr": 0.01, "epochs": 3}} for _ in values],
        records=[record_of(index, value, grid, **changes) for index, value in enumerate(values)],
        most_usd=[most_usd for _ in values],
    )


def stand(*rounds: Sequence[float | None], wanted: SearchRequest = WANTED, search: Search = SEARCH) -> SearchState:
    return read_standing(search, wanted, [round_of(values, number) for number, values in enumerate(rounds, 1)])


def read(record: Record | None, **changes: Any) -> Trial:
    round_ = replace(round_of([0.5]), records=[record], **changes)
    return read_trial(WANTED, round_, 0, 7)


# what became of a trial


def test_a_trial_has_the_value_of_its_metric_and_the_parameters_of_its_question() -> None:
    one = read(record_of(0, 0.75, metrics={"accuracy": 0.75, "loss": 9.0}))
    assert (one.number, one.value, one.reason, one.outcome) == (7, 0.75, "", "Completed")
    assert one.parameters == {"lr": 0.01}
    assert (one.cost_usd, one.seconds, one.grid, one.index) == (0.5, 600.0, "tune-7-r1", 0)


@pytest.mark.parametrize("outcome", [LineOutcome.FAILED, LineOutcome.STOPPED, LineOutcome.REFUSED])
def test_a_trial_that_did_not_complete_has_no_value_whatever_it_reported(outcome: LineOutcome) -> None:
    one = read(record_of(0, 0.75, outcome=outcome, reason="its node was lost"))
    assert (one.value, one.reason, one.outcome) == (None, "its node was lost", outcome.value)


def test_a_trial_that_did_not_complete_has_a_reason_in_any_case() -> None:
    assert read(record_of(0, None, reason="")).reason == "it is Failed"
    assert read(None).reason == "its grid ended before it had a record"
    assert read(None).outcome == ""


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_metric_that_is_no_number_is_no_value(value: float) -> None:
    one = read(record_of(0, 0.5, metrics={"accuracy": value}))
    assert one.value is None
    assert f"it completed without the metric accuracy (its last value is {value})" in one.reason


def test_a_trial_that_diverged_says_so_and_not_what_became_of_its_other_metrics() -> None:
    why = {"accuracy": "its last value is nan", "loss": "its last value is inf"}
    one = read(record_of(0, 0.5, metrics={"epoch": 3.0}, metric_problems=why))
    assert (one.value, one.reason.partition(";")[0]) == (
        None,
        "it completed without the metric accuracy (its last value is nan)",
    )
    other = read(record_of(0, 0.5, metrics={}, metric_problems={"loss": "its last value is inf"}))
    assert "(it reported none)" in other.reason


def test_a_trial_without_the_metric_says_what_it_reported_and_where_its_log_is() -> None:
    one = read(record_of(0, 0.5, metrics={"loss": 1.0, "auc": 0.5}))
    assert one.value is None
    assert one.reason.startswith(
        "it completed without the metric accuracy (it reported auc, loss); its log is https://"
    )
    assert "(it reported none); its log is not known" in read(record_of(0, 0.5, metrics={}, log="")).reason


def test_zero_and_values_below_it_are_values() -> None:
    assert [read(record_of(0, value)).value for value in (0.0, -3.5)] == [0.0, -3.5]


@pytest.mark.parametrize(
    ("record", "most_usd", "cost"),
    [
        (record_of(0, 0.5, cost_usd=0.25), [1.75], 0.25),
        (record_of(0, 0.5, cost_usd=0.0), [1.75], 0.0),
        (record_of(0, 0.5, cost_usd=None), [1.75], 1.75),
        (record_of(0, None, cost_usd=None), [1.75], 1.75),
        (None, [1.75], 1.75),
        (None, [None], None),
        (None, [], 0.0),
    ],
)
def test_a_cost_that_is_not_known_counts_as_the_most(
    record: Record | None, most_usd: list[float | None], cost: float | None
) -> None:
    """A grid that was not planned ran nothing."""
    assert read(record, most_usd=most_usd).cost_usd == cost


# where a search stands


def test_trials_are_numbered_over_all_rounds() -> None:
    found = stand([0.1, 0.2], [0.3], [None, 0.4])
    assert [one.number for one in found.trials] == [0, 1, 2, 3, 4]
    assert (found.rounds, found.number) == ((2, 1, 2), 5)
    assert [one.value for one in found.last] == [None, 0.4]
    assert found.spent_usd == pytest.approx(2.5)


def test_a_search_that_goes_on_counts_from_where_the_other_ended() -> None:
    earlier = (replace(read(record_of(0, 0.9)), number=-1), replace(read(record_of(0, 0.5)), number=6))
    found = stand([0.1], search=replace(SEARCH, earlier=earlier, spent_usd=3.0))
    assert [one.number for one in found.trials] == [-1, 6, 7]
    assert [one.number for one in found.own] == [6, 7]
    assert found.spent_usd == pytest.approx(3.5)
    assert len(found.last) == 1


def test_before_the_first_round_nothing_is_known() -> None:
    found = stand()
    assert (found.trials, found.rounds, found.number, found.last) == ((), (), 0, ())
    assert (found.spent_usd, found.most_usd) == (0.0, ())


PRICED = replace(SEARCH, most_usd=(1.0, 8.0))
"""A search in two places."""


def test_the_most_that_a_trial_costs_is_that_of_its_place_by_the_newest_plan() -> None:
    rounds = [replace(round_of([0.1, 0.2, 0.3]), most_usd=[1.0, 8.0, 2.0])]
    assert read_standing(PRICED, WANTED, rounds).most_usd == (2.0, 8.0)
    assert read_standing(PRICED, WANTED, [*rounds, replace(round_of([0.4], 2), most_usd=[9.0])]).most_usd == (2.0, 9.0)


@pytest.mark.parametrize("most_usd", [[None, None], []], ids=["unknown", "not planned"])
def test_what_a_round_does_not_say_stays_as_it_was(most_usd: list[float | None]) -> None:
    assert read_standing(PRICED, WANTED, [replace(round_of([0.1, 0.2]), most_usd=most_usd)]).most_usd == (1.0, 8.0)


def test_without_a_cap_no_price_is_kept() -> None:
    assert read_standing(SEARCH, WANTED, [round_of([0.1, 0.2])]).most_usd == ()


# the best


def test_the_best_is_the_largest_or_the_smallest() -> None:
    own = stand([0.3, 0.9, None, 0.1]).own
    assert [one.value for one in (find_best(own, Direction.MAXIMIZE), find_best(own, Direction.MINIMIZE)) if one] == [
        0.9,
        0.1,
    ]


@pytest.mark.parametrize("direction", list(Direction))
def test_of_equal_trials_the_first_is_the_best(direction: Direction) -> None:
    best = find_best(stand([None, 0.5, 0.5], [0.5]).own, direction)
    assert best is not None
    assert best.number == 1


@pytest.mark.parametrize("direction", list(Direction))
def test_where_no_trial_has_a_value_none_is_the_best(direction: Direction) -> None:
    assert find_best(stand([None, None]).own, direction) is None
    assert find_best((), direction) is None


def test_a_trial_of_a_warm_start_is_not_this_searchs_best() -> None:
    theirs = replace(read(record_of(0, 0.99)), number=-1)
    found = stand([0.5], search=replace(SEARCH, earlier=(theirs,)))
    best = find_best(found.own, Direction.MAXIMIZE)
    assert best is not None
    assert best.value == 0.5


# whether it goes on


def test_a_search_goes_on_with_a_round_and_at_last_with_what_is_left() -> None:
    wanted = request_of(trials=10, parallel=4)
    counts = [decide(wanted, stand(*[[0.5] * 4] * rounds)).count for rounds in range(3)]
    assert counts == [4, 4, 2]


def test_a_search_ends_when_all_trials_are_told() -> None:
    verdict = decide(request_of(trials=8), stand([0.1] * 4, [0.2] * 4))
    assert (verdict.count, verdict.why, verdict.error) == (0, "All 8 trials are told.", None)


def test_more_trials_than_are_allowed_now_end_a_search_that_goes_on() -> None:
    assert decide(request_of(trials=3, parallel=2), stand([0.1] * 4)).count == 0


def test_a_grid_of_fewer_combinations_than_trials_ends_with_the_last_of_them() -> None:
    wanted = request_of(trials=20)
    assert decide(wanted, stand([0.1] * 4), 6).count == 2
    verdict = decide(wanted, stand([0.1] * 4, [0.1] * 2), 6)
    assert verdict.count == 0
    assert verdict.why == "All 6 trials are told, every combination of the 20 that were allowed."


def test_trials_of_a_warm_start_do_not_count() -> None:
    theirs = tuple(replace(read(record_of(0, 0.9)), number=-1) for _ in range(8))
    assert decide(request_of(trials=8), stand(search=replace(SEARCH, earlier=theirs))).count == 4


def test_a_round_all_of_whose_trials_failed_ends_a_search_that_has_values() -> None:
    verdict = decide(WANTED, stand([0.9, 0.8], [None] * 4))
    assert verdict.count == 0
    assert verdict.why == "All 4 trials of round 2 failed."
    assert verdict.error == {
        "error": "SearchFailed",
        "cause": "All 4 trials of round 2 failed.\n- 4 trials: out of memory",
    }


def test_small_rounds_that_failed_end_a_search_when_together_they_are_no_chance() -> None:
    assert decide(WANTED, stand([0.9], [None], [None], [None])).count == 4
    verdict = decide(WANTED, stand([0.9], *[[None]] * 4))
    assert (verdict.count, verdict.why) == (0, "All 4 trials of rounds 2 to 5 failed.")
    assert verdict.failures == ("- 4 trials: out of memory",)


def test_rounds_that_failed_before_one_with_a_value_end_nothing() -> None:
    assert decide(WANTED, stand([None] * 3, [0.1], [None] * 3)).count == 4


def test_a_search_that_ends_without_a_value_has_failed() -> None:
    verdict = decide(request_of(trials=2, parallel=1), stand([None], [None]))
    assert verdict.why == "All 2 trials are told."
    assert verdict.error == {"error": "SearchFailed", "cause": "All 2 trials are told.\n- 2 trials: out of memory"}


def test_one_trial_with_a_value_keeps_a_search_going() -> None:
    assert decide(WANTED, stand([None, None, None, 0.1])).count == 4


def test_a_last_round_that_failed_is_no_failure_when_all_are_told_and_some_have_values() -> None:
    assert decide(request_of(trials=5, parallel=4), stand([0.5], [None] * 4)).error is None
    assert decide(request_of(trials=2, parallel=1), stand([0.5], [None])).error is None


# a round that Plan refused for its cost


@pytest.mark.parametrize(
    ("error", "cause", "is_it"),
    [
        ("InvalidRequest", "The grid was refused.\n- max_cost_usd: 1.00 is less than 2.00", True),
        ("InvalidRequest", "The grid was refused.\n- max_cost_usd: 1.00 is less\n- line 1: image: none", False),
        ("InvalidRequest", "The grid was refused.\n- line 1: max_cost_usd: the line has none", False),
        ("InvalidRequest", "max_cost_usd: 1.00 is less than 2.00", False),
        ("InvalidRequest", "", False),
        ("GridFailed", "The grid was refused.\n- max_cost_usd: 1.00 is less than 2.00", False),
    ],
)
def test_a_round_is_unaffordable_only_where_its_cost_alone_was_refused(error: str, cause: str, is_it: bool) -> None:
    assert is_unaffordable(error, cause) is is_it


# money


def money(cap: float, spent: float = 0.0, most_usd: tuple[float, ...] = (1.75,), parallel: int = 4) -> int:
    """How many trials the next round has."""
    wanted = request_of(trials=100, parallel=parallel, max_cost_usd=cap)
    standing = SearchState(trials=(), rounds=(), spent_usd=spent, most_usd=most_usd)
    return decide(wanted, standing).count


@pytest.mark.parametrize(
    ("cap", "spent", "count"),
    [(7.0, 0.0, 4), (6.99, 0.0, 3), (10.0, 6.5, 2), (10.0, 8.25, 1), (10.0, 8.26, 0), (10.0, 10.0, 0), (10.0, 12.0, 0)],
)
def test_a_round_has_no_more_trials_than_what_is_left_pays_at_their_dearest(
    cap: float, spent: float, count: int
) -> None:
    assert money(cap, spent) == count


def test_a_round_has_the_trials_that_the_rest_pays_in_the_places_whose_turn_it_is() -> None:
    assert money(5.0, most_usd=(0.5, 4.0, 0.5)) == 3
    assert money(4.4, most_usd=(0.5, 4.0, 0.5)) == 1
    assert money(3.9, most_usd=(4.0, 0.5, 0.5)) == 0


def test_a_search_without_money_for_a_trial_ends_and_says_what_is_left() -> None:
    wanted = request_of(max_cost_usd=10)
    verdict = decide(wanted, SearchState(trials=(), rounds=(), spent_usd=9.0, most_usd=(1.75,)))
    assert verdict.why == "$1.00 of max_cost_usd are left, and one more trial could cost $1.75."
    assert verdict.error is None


def test_without_a_cap_or_a_price_money_ends_nothing() -> None:
    assert money(0.01, most_usd=()) == 4
    free = SearchState(trials=(), rounds=(), spent_usd=1e9, most_usd=(1e9,))
    assert decide(request_of(trials=100), free).count == 4
    assert money(10.0, 5.0, most_usd=(0.0,)) == 4


def test_the_grid_of_a_round_is_given_the_rest_in_whole_cents() -> None:
    def rest(cap: float | None, spent: float) -> float | None:
        standing = SearchState(trials=(), rounds=(), spent_usd=spent, most_usd=())
        return rest_usd(request_of(max_cost_usd=cap), standing)

    assert rest(10, 0.001) == 9.99
    assert rest(0.3, 0.2) == 0.1
    assert rest(1.1, 0) == 1.1
    assert rest(None, 5) is None


@pytest.mark.parametrize("cents", range(1, 60))
def test_a_round_is_never_refused_for_the_rest_that_it_is_given(cents: int) -> None:
    """Plan adds up what the lines cost, and compares it with the cap in cents."""
    most, cap = cents / 100 / 3, cents / 100 + 0.004
    wanted = request_of(trials=100, parallel=9, max_cost_usd=cap)
    standing = SearchState(trials=(), rounds=(), spent_usd=0.0, most_usd=(most,))
    count, rest = decide(wanted, standing).count, rest_usd(wanted, standing)
    assert rest is not None
    assert math.fsum([most] * count) <= rest
    assert count >= 2


# patience


@pytest.mark.parametrize(
    ("rounds", "goes_on"),
    [
        ([[0.5], [0.4]], True),
        ([[0.5], [0.4], [0.3]], False),
        ([[0.5], [0.4], [0.6]], True),
        ([[0.5], [0.6], [0.4]], True),
        ([[0.5], [0.6], [0.4], [0.6]], False),
        ([[0.5], [0.5], [0.5]], False),
        ([[None, 0.5], [None, 0.1], [None, 0.2]], False),
        ([[0.1, None], [0.1, 0.2], [None, 0.2]], True),
    ],
)
def test_a_search_ends_after_so_many_rounds_without_a_better_trial(
    rounds: list[list[float | None]], goes_on: bool
) -> None:
    wanted = request_of(trials=100, patience=2)
    verdict = decide(wanted, stand(*rounds, wanted=wanted))
    assert (verdict.count > 0) is goes_on
    assert goes_on or verdict.why == "2 rounds brought nothing better (patience)."
    assert verdict.error is None


def test_patience_knows_the_direction() -> None:
    wanted = request_of(trials=100, patience=1, objective=MINIMIZE)
    assert decide(wanted, stand([0.5], [0.4])).count == 4
    assert decide(wanted, stand([0.5], [0.6])).count == 0


def test_without_patience_nothing_better_ends_nothing() -> None:
    assert decide(WANTED, stand(*[[0.5]] * 20)).count == 4


def test_trials_before_a_resume_are_what_a_round_has_to_better() -> None:
    wanted = request_of(trials=100, patience=1)
    earlier = (replace(read(record_of(0, 0.9)), number=0),)
    assert decide(wanted, stand([0.5], [0.6], search=replace(SEARCH, earlier=earlier))).count == 0
    assert decide(wanted, stand([0.5], search=replace(SEARCH, earlier=earlier))).count == 4


# reasons


def test_equal_reasons_are_one_and_the_most_frequent_comes_first() -> None:
    trials = [*stand([None, None, None]).own, replace(read(None), reason="disk   full\n")]
    assert group_reasons(trials)[0] == "- 3 trials: out of memory"
    assert group_reasons(trials)[1].endswith(": disk full")


def test_reasons_that_differ_in_training_and_region_alone_are_equal() -> None:
    trials = [
        replace(
            read(record_of(0, None)),
            training=f"yard-tune-{one}",
            region=region,
            reason=f"{one}: no yard-tune-{one} in {region}",
        )
        for one, region in (("a", "eu-central-1"), ("a", "us-east-1"))
    ]
    assert group_reasons(trials) == ("- 2 trials: a: no <training> in <region>",)


def test_trials_with_a_value_have_no_reason() -> None:
    assert group_reasons(stand([0.5, 0.6]).own) == ()


def test_a_message_names_so_many_reasons_of_so_many_characters() -> None:
    trials = [replace(read(None), reason=f"{one} " + "x" * 5000) for one in range(50)]
    found = group_reasons(trials)
    assert len(found) == SHOWN
    assert max(map(len, found)) <= MOST_REASON + 20
