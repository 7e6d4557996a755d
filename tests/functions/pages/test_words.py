"""Numbers, money and durations in words: no unit is shown as often as a larger one has it, and nothing has no sign."""

from __future__ import annotations

import pytest

from pages import words


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (-0.0, "0 s"),
        (59.4, "59 s"),
        (59.7, "1 min"),
        (119.6, "2 min"),
        (3599.4, "59 min 59 s"),
        (3599.7, "1 h"),
        (86_340, "23 h 59 min"),
        (86_395, "1 d"),
        (90_000, "1 d 1 h"),
        (-1, "unknown"),
        (float("nan"), "unknown"),
        (None, "unknown"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: object, shown: str) -> None:
    assert words.duration(seconds) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (-0.0, "0"),
        (0, "0"),
        (-2, "-2"),
        (1234.5, "1,234.5"),
        (0.25, "0.25"),
        (float("inf"), "unknown"),
        ("1", "unknown"),
    ],
)
def test_a_number_has_the_digits_that_count(value: object, shown: str) -> None:
    assert words.number(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(-0.001, "$0.00"), (-0.0, "$0.00"), (0.006, "$0.01"), (12.5, "$12.50")])
def test_money_that_rounds_to_nothing_has_no_sign(value: object, shown: str) -> None:
    assert words.usd(value) == shown
