"""Draws a value over each hyperparameter: points, and the same numbers in a few rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from pages import words
from pages.charts import Axis, Chart, choose_axis, draw_dots, short, thin

MOST_PARAMETERS = 8
MOST_CHOICES = 12
FEW = 6
"""So few different numbers are drawn as choices."""
MOST_TICKS = 36
"""Characters that choices have below a chart; longer ones stand in its note."""
BINS = 8
_NAME = 60
"""Characters of a name or of a choice."""

Point = tuple[float | str, float]
Pair = tuple[Mapping[str, Any], float]
"""Hyperparameters of a training, and its value."""


def draw_parameters(pairs: Sequence[Pair], what: str, key: str, best: Pair | None = None) -> list[Chart]:
    """Returns a chart of the values over each hyperparameter that has two values or more, in the order of their names."""
    names = sorted({name for parameters, _ in pairs for name in parameters})
    charts = list[Chart]()
    for name in names:
        points = [(read_value(parameters[name]), value) for parameters, value in pairs if name in parameters]
        if len({one for one, _ in points}) < 2:
            continue
        if len(charts) == MOST_PARAMETERS:
            break
        mark = (read_value(best[0][name]), best[1]) if best and name in best[0] else None
        charts.append(_draw(points, name, what, f"{key}-{len(charts)}", mark))
    return charts


def read_value(value: object) -> float | str:
    """Returns a hyperparameter as a number where it is one, or the text of one; otherwise as a text."""
    if isinstance(value, str):
        try:
            found = words.finite(float(value))
        except ValueError:
            found = None
    else:
        found = words.finite(value)
    return words.visible(str(value), _NAME) if found is None else found


def _draw(points: Sequence[Point], name: str, what: str, key: str, best: Point | None) -> Chart:
    up = choose_axis(value for _, value in points)
    numbers = [(one, value) for one, value in points if isinstance(one, float)]
    choices = {one for one, _ in points}
    if len(numbers) == len(points) and len(choices) > FEW:
        across = choose_axis((one for one, _ in numbers), may_be_log=True)
        placed, rows, ticks, kind = numbers, _sum_up_numbers(numbers, across), across.list_ticks(short), ""
        spots = [(one, value) for one, value in ([best] if best else []) if isinstance(one, float)]
    else:
        shown = sorted((one for one, _ in Counter(one for one, _ in points).most_common(MOST_CHOICES)), key=_order)
        across, kind = Axis(-0.5, len(shown) - 0.5), "even"
        placed = [
            (shown.index(one) + _spread(number), value) for number, (one, value) in enumerate(points) if one in shown
        ]
        rows = [_sum_up(_word(one), [value for other, value in points if other == one]) for one in shown]
        ticks = tuple(map(_word, shown))
        spots = [(float(shown.index(best[0])), best[1])] if best and best[0] in shown else []
    drawn = thin(placed)
    notes = [f"{len(drawn):,} of {words.count(len(points), 'point')} are drawn." if len(drawn) < len(points) else ""]
    notes += ["The axis below has powers of ten." if across.is_log else ""]
    notes += [
        f"{len(choices) - MOST_CHOICES:,} rarer values are not shown." if kind and len(choices) > MOST_CHOICES else ""
    ]
    if sum(map(len, ticks)) > MOST_TICKS:
        ticks, notes = (), [f"From left to right: {', '.join(ticks)}.", *notes]
    return Chart(
        key=key,
        title=f"{words.visible(what, _NAME)} over {words.visible(name, _NAME)}",
        description=f"{words.count(len(points), 'point')}, from {words.number(up.low)} to {words.number(up.high)}.",
        dots=draw_dots(drawn, across, up),
        best=draw_dots(spots, across, up),
        best_kind="star",
        x_ticks=ticks,
        x_kind=kind,
        y_ticks=up.list_ticks(short),
        columns=(words.visible(name, _NAME), "Lines", "Lowest", "Median", "Highest"),
        rows=tuple(rows),
        note=" ".join(note for note in notes if note),
    )


def _order(value: float | str) -> tuple[bool, float, str]:
    """Numbers come before texts."""
    return (False, value, "") if isinstance(value, float) else (True, 0.0, value)


def _word(value: float | str) -> str:
    return short(value) if isinstance(value, float) else value


def _spread(number: int) -> float:
    """Returns how far a point is moved sideways, so that points of one choice do not hide each other: the same for the same number."""
    return (number * 0.618 % 1 - 0.5) * 0.5


def _sum_up_numbers(points: Sequence[tuple[float, float]], across: Axis) -> list[tuple[str, ...]]:
    """Returns a row for each part of the axis that has points."""
    parts: dict[int, list[tuple[float, float]]] = {}
    for point in points:
        parts.setdefault(min(BINS - 1, int(across.place(point[0]) * BINS / 100)), []).append(point)
    rows = []
    for _, part in sorted(parts.items()):
        low, high = short(min(one for one, _ in part)), short(max(one for one, _ in part))
        rows.append(_sum_up(low if low == high else f"{low} to {high}", [value for _, value in part]))
    return rows


def _sum_up(which: str, values: Sequence[float]) -> tuple[str, ...]:
    return which, f"{len(values):,}", *(short(one) for one in (min(values), median(values), max(values)))
