"""The database is woken where prices or capacity changed, and what a silent region had stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from keeper.market import (
    KEPT_S,
    CapacityRow,
    KeptTables,
    MarketFacts,
    differs,
    merge_capacity,
    merge_prices,
    remember_ends,
    remember_market,
)

HOME, AWAY = "eu-central-1", "eu-west-1"
BOTH = (HOME, AWAY)
ROW = CapacityRow(region=HOME, type="p5.48xlarge", kind="reservation", free=2, begins=1.0, ends=None)
SILENT = MarketFacts(on_demand={}, spot={}, capacity={})
BEFORE = KeptTables(
    types=("g5.xlarge", "ml.g5.xlarge"),
    prices={
        f"{HOME} g5.xlarge on-demand": 1.0,
        f"{HOME} g5.xlarge spot": 0.4,
        f"{AWAY} g5.xlarge spot": 0.5,
    },
    capacity={"cr-1": ROW, "cr-2": replace(ROW, region=AWAY)},
)


def test_nothing_that_was_said_leaves_everything_as_it_was() -> None:
    prices, capacity = merge_prices(BEFORE, SILENT, BOTH), merge_capacity(BEFORE, SILENT, BOTH)
    assert (prices, capacity) == (BEFORE.prices, BEFORE.capacity)
    assert not differs(BEFORE, prices, capacity)


def test_a_region_that_answers_replaces_all_that_it_had_and_no_other_region() -> None:
    market = MarketFacts(on_demand={}, spot={HOME: {}}, capacity={HOME: {"cr-3": ROW}})
    assert merge_prices(BEFORE, market, BOTH) == {
        f"{HOME} g5.xlarge on-demand": 1.0,
        f"{AWAY} g5.xlarge spot": 0.5,
    }
    assert merge_capacity(BEFORE, market, BOTH) == {"cr-2": replace(ROW, region=AWAY), "cr-3": ROW}


def test_a_region_that_left_the_settings_and_a_type_that_nothing_names_have_no_rows() -> None:
    assert merge_prices(BEFORE, SILENT, (HOME,)).keys() == {f"{HOME} g5.xlarge on-demand", f"{HOME} g5.xlarge spot"}
    assert merge_prices(replace(BEFORE, types=()), SILENT, BOTH) == {}
    assert merge_capacity(BEFORE, SILENT, (HOME,)) == {"cr-1": ROW}


@pytest.mark.parametrize(("usd", "wakes"), [(0.4, False), (0.4079, False), (0.3921, False), (0.41, True), (0.39, True)])
def test_a_price_wakes_the_database_when_it_moved_by_two_percent(usd: float, wakes: bool) -> None:
    prices = BEFORE.prices | {f"{HOME} g5.xlarge spot": usd}
    assert differs(BEFORE, prices, BEFORE.capacity) is wakes


def test_small_moves_add_up_to_one_that_is_written() -> None:
    """Each is compared with what was written, and not with the hour before."""
    moved = 0.4
    for _ in range(5):
        moved *= 1.005
    assert differs(BEFORE, BEFORE.prices | {f"{HOME} g5.xlarge spot": moved}, BEFORE.capacity)


@pytest.mark.parametrize(
    "capacity", [{}, {"cr-1": ROW}, {**BEFORE.capacity, "cr-1": replace(ROW, free=1)}, {**BEFORE.capacity, "cr-3": ROW}]
)
def test_any_change_of_capacity_wakes_it(capacity: dict[str, CapacityRow]) -> None:
    assert differs(BEFORE, BEFORE.prices, capacity)


def test_a_price_that_is_new_or_gone_wakes_it() -> None:
    assert differs(BEFORE, BEFORE.prices | {f"{AWAY} ml.g5.xlarge on-demand": 1.4}, BEFORE.capacity)
    assert differs(BEFORE, {}, BEFORE.capacity)


def test_ends_are_forgotten_once_no_pass_looks_for_them() -> None:
    known = remember_ends(remember_ends(BEFORE, {"old": 0.0}, now=1.0), {"new": KEPT_S}, now=KEPT_S + 0.5)
    assert known.ends == {"new": KEPT_S}


def test_of_two_passes_the_one_that_wrote_last_is_remembered_whichever_ends_last() -> None:
    first, second = replace(BEFORE, prices={}), replace(BEFORE, capacity={})
    begun = replace(BEFORE, writing="8")
    assert remember_market(begun, first, "7") == begun
    known = remember_market(begun, second, "8")
    assert (known, remember_market(known, first, "7")) == (second, second)


def test_a_pass_that_never_ended_wakes_it() -> None:
    assert differs(replace(BEFORE, writing="7"), BEFORE.prices, BEFORE.capacity)
