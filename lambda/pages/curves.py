"""Draws the metric and the step of a job over its time, attempt by attempt."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from contract.curves import Point
from pages import words
from pages.attempts import AttemptHistory
from pages.charts import Axis, Chart, choose_axis, draw_line, percent, short
from pages.facts import JobFacts

MOST_MARKS = 30


def draw_curves(facts: JobFacts, attempts: Sequence[AttemptHistory]) -> list[Chart]:
    """Returns the charts of the points that are known: none where there is no point, no metric where no point has one."""
    points = [one for one in (facts.curve.points if facts.curve else ()) if words.finite(one.at) is not None]
    if not points:
        return []
    begin = min(one.at for one in points)
    across = choose_axis(one.at - begin for one in points)
    ticks = across.list_ticks(words.duration)
    marks = _mark_attempts(attempts, across, begin)
    has_metric = any(words.finite(one.metric) is not None for one in points)
    charts = [_draw(points, "metric", across, begin, ticks, marks)] if has_metric else []
    return [*charts, _draw(points, "step", across, begin, ticks, marks)]


def show_metric(point: Point) -> str:
    """Returns the metric, or what stands there in the place of a number; empty where there is neither."""
    found = words.finite(point.metric)
    return words.visible(point.diverged, 10) if found is None else words.number(found)


def list_points(facts: JobFacts) -> list[tuple[str, ...]]:
    """Returns a row for each point: attempt, step, time and metric."""
    return [
        (
            str(one.attempt),
            words.number(one.step),
            words.moment(one.at),
            show_metric(one) or "–",
        )
        for one in (facts.curve.points if facts.curve else ())
    ]


def _draw(
    points: Sequence[Point], what: str, across: Axis, begin: float, ticks: tuple[str, ...], marks: tuple[str, ...]
) -> Chart:
    values = [(one, words.finite(one.metric if what == "metric" else one.step)) for one in points]
    known = [value for _, value in values if value is not None]
    up = choose_axis(known or [0.0])
    lines = tuple(
        draw_line([(one.at - begin, value) for one, value in group], across, up)
        for _, group in groupby(values, key=lambda pair: pair[0].attempt)
    )
    low, high, last = (words.number(one) for one in (min(known, default=0), max(known, default=0), (known or [0])[-1]))
    return Chart(
        key=f"curve-{what}",
        title=f"{what.capitalize()} over time",
        description=f"{words.count(len(known), 'point')} over {words.duration(across.high)}: "
        f"from {low} to {high}, the newest {last}.",
        lines=lines,
        x_ticks=ticks,
        y_ticks=up.list_ticks(short if what == "metric" else _word_step),
        marks=marks,
    )


def _word_step(value: object) -> str:
    found = words.finite(value)
    return words.number(found if found is None else round(found))


def _mark_attempts(attempts: Sequence[AttemptHistory], across: Axis, begin: float) -> tuple[str, ...]:
    """Returns the places where attempts began, but for those before the first point; none where they would hide the curve."""
    later = [one.begin - begin for one in attempts[1:] if begin <= one.begin <= begin + across.high]
    return tuple(percent(across.place(at) / 100) for at in later) if len(later) <= MOST_MARKS else ()
