"""Draws curves, points and bars of numbers: places in percent, so that a chart is as wide as the screen and its words keep their size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from pages.words import UNKNOWN, finite, number

MOST_DOTS = 1000
"""Points of a chart; of more, every n-th is drawn."""
_LOG_FROM = 100.0
"""Positive numbers whose largest is so many times the smallest are drawn by their powers of ten, unless most are large."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Where numbers lie between the two ends of an axis."""

    low: float
    high: float
    is_log: bool = False

    def place(self, value: float) -> float:
        """Returns the place of a number from 0 to 100; numbers beyond an end lie on it."""
        low, high, at = (
            (math.log10(one) for one in (self.low, self.high, value)) if self.is_log else (self.low, self.high, value)
        )
        return 50.0 if high <= low else min(100.0, max(0.0, 100 * (at / 2 - low / 2) / (high / 2 - low / 2)))

    def list_ticks(self, word: Callable[[object], str]) -> tuple[str, ...]:
        """Returns words for both ends and the middle, or for the one number that there is."""
        if self.high <= self.low:
            return (word(self.low),)
        middle = math.sqrt(self.low) * math.sqrt(self.high) if self.is_log else self.low / 2 + self.high / 2
        return word(self.low), word(middle), word(self.high)


def choose_axis(values: Iterable[float], *, may_be_log: bool = False) -> Axis:
    """Returns an axis on which all of these finite numbers lie; there must be one at least."""
    known = sorted(values)
    low, high = known[0], known[-1]
    is_steep = low > 0 and high / low >= _LOG_FROM and known[len(known) // 2] < high / 4
    return Axis(low, high, may_be_log and is_steep)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A drawing, and the same numbers as a table."""

    key: str
    """Unique in the page."""
    title: str
    description: str
    lines: tuple[str, ...] = ()
    """Paths in a square of 100 by 100."""
    dots: str = ""
    """A path of points."""
    best: str = ""
    """A path of what stands out ..."""
    best_kind: str = "best"
    """... and how it is drawn: as a line (best) or as points (star)."""
    x_ticks: tuple[str, ...] = ()
    x_kind: str = ""
    """How the words below lie: at both ends and in the middle, or each in the middle of its part (even)."""
    y_ticks: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    """Places of lines across the chart, in percent from the left."""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = field(default=())
    note: str = ""


def draw_line(points: Sequence[tuple[float, float | None]], x: Axis, y: Axis) -> str:
    """Returns the path of a curve. It has a gap where a number is absent, and a dot where one stands alone."""
    path, pen, before = list[str](), "M", ""
    for across, up in points:
        if up is None:
            path += [f"{before}h0"] if pen == "L" and path and path[-1].startswith("M") else []
            pen = "M"
            continue
        before = f"{pen}{x.place(across):.2f} {100 - y.place(up):.2f}"
        path.append(before)
        pen = "L"
    if path and path[-1].startswith("M"):
        path.append("h0")
    return "".join(path)


def draw_dots(points: Iterable[tuple[float, float]], x: Axis, y: Axis) -> str:
    """Returns a path with a dot for each point: lines of no length, which a round cap makes visible."""
    places = dict.fromkeys(f"M{x.place(across):.1f} {100 - y.place(up):.1f}h0" for across, up in points)
    return "".join(places)


def thin(points: Sequence[tuple[float, float]], most: int = MOST_DOTS) -> list[tuple[float, float]]:
    """Returns every n-th point, so that there are at most so many."""
    step = max(1, math.ceil(len(points) / most))
    return list(points[::step])


def short(value: object) -> str:
    """Words a number on an axis with four digits."""
    found = finite(value)
    return UNKNOWN if found is None else number(float(f"{found:.4g}"))


def percent(share: float) -> str:
    """Words a place or a width between 0 and 1 for a drawing."""
    return f"{min(1.0, max(0.0, share)) * 100:.2f}%"
