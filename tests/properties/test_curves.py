"""The curve of a job: however long it trains, it stays short, and all of the job stays visible."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.codec import compact, decode
from contract.curves import MOST_POINTS, NEWEST, Curve, Point, extend, point_of
from contract.reports import Progress

METRICS = st.none() | st.floats(allow_nan=False, allow_infinity=False, width=32)
MOVES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 500), METRICS, st.booleans()), max_size=700)
"""Of each look: seconds since the last one in minutes, steps, the metric, and whether a new attempt began."""


def points_of(moves: list[tuple[int, int, float | None, bool]]) -> list[Point]:
    points, attempt, step, at = list[Point](), 1, 0, 1_800_000_000.0
    for minutes, steps, metric, is_new in moves:
        attempt, step, at = attempt + is_new, 0 if is_new else step + steps, at + 60.0 * minutes
        points.append(Point(attempt=attempt, step=step, at=at, metric=metric))
    return points


def curve_of(points: list[Point]) -> Curve:
    curve = Curve()
    for point in points:
        curve = extend(curve, point)
    return curve


@given(MOVES)
def test_a_curve_is_short_in_order_and_made_of_what_was_reported(
    moves: list[tuple[int, int, float | None, bool]],
) -> None:
    points = points_of(moves)
    curve = curve_of(points)
    assert len(curve.points) <= MOST_POINTS
    places = iter(points)
    assert all(point in places for point in curve.points), "a subsequence of the points"


@given(MOVES)
def test_the_first_and_the_newest_points_stay(moves: list[tuple[int, int, float | None, bool]]) -> None:
    points = points_of(moves)
    changes = [
        one
        for one, before in zip(points, [None, *points], strict=False)
        if before is None or (one.attempt, one.step, one.metric) != (before.attempt, before.step, before.metric)
    ]
    curve = curve_of(points)
    assert curve.points[:1] == tuple(changes[:1])
    assert curve.points[-NEWEST:] == tuple(changes[-NEWEST:])


@pytest.mark.parametrize("looks", [300, 700, 1440, 3000])
def test_of_a_long_job_no_part_is_missing(looks: int) -> None:
    """Looks a minute apart: between two points is never more than four times what even spacing would have."""
    curve = curve_of([Point(attempt=1, step=number, at=60.0 * number) for number in range(looks)])
    gaps = [after.at - before.at for before, after in zip(curve.points, curve.points[1:], strict=False)]
    assert len(curve.points) == MOST_POINTS
    assert max(gaps) <= 4 * 60.0 * looks / MOST_POINTS


def test_points_that_follow_each_other_closely_stay_while_they_are_the_newest() -> None:
    slow = [Point(attempt=1, step=number, at=600.0 * number) for number in range(300)]
    quick = [Point(attempt=2, step=number, at=180_000.0 + number) for number in range(NEWEST)]
    assert curve_of([*slow, *quick]).points[-NEWEST:] == tuple(quick)


@given(MOVES)
def test_what_says_nothing_new_changes_nothing(moves: list[tuple[int, int, float | None, bool]]) -> None:
    curve = curve_of(points_of(moves))
    for point in curve.points[-1:]:
        assert (
            extend(curve, Point(attempt=point.attempt, step=point.step, at=point.at + 60, metric=point.metric)) is curve
        )


@given(MOVES)
def test_a_curve_is_written_and_read_as_it_is(moves: list[tuple[int, int, float | None, bool]]) -> None:
    curve = curve_of(points_of(moves))
    assert decode(Curve, compact(curve)) == curve


@given(st.integers(-(10**30), 10**30), st.none() | st.floats())
def test_a_point_has_a_step_that_can_be_one_and_a_metric_that_is_finite(step: int, metric: float | None) -> None:
    point = point_of(Progress(step=step, metric=metric), attempt=1, at=0.0)
    if point is None:
        assert not 0 <= step <= 10**15
    else:
        assert point.metric is None or math.isfinite(point.metric)


def test_a_trainer_that_reports_nothing_gives_no_point() -> None:
    assert point_of(None, attempt=1, at=0.0) is None
