"""When a line may be submitted, and how long to wait after a no: so that ten thousand children keep one pace without talking."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from contract.grid import Grid, Line


@dataclass(frozen=True, slots=True)
class Round:
    """The list of lines that a round still has to do, with the time at which it was written."""

    number: int
    began_at: float
    work: Sequence[int] = ()
    """Indices, from round 2 on."""


def slot(line: Line, grid: Grid, round_: Round) -> int:
    """Its place in the order of its region. A later round is short, or about as long as the first: either its own order is taken
    or the plan's, by all children of a region alike, so that no two lines of a region share a slot."""
    if round_.number == 1 or len(round_.work) > grid.regions.get(line.region, 0):
        return line.slot
    return list(round_.work).index(line.index)


def turn_s(line: Line, grid: Grid) -> float:
    """How long all lines of the region take at the grid's pace."""
    return grid.regions.get(line.region, grid.lines) / grid.pace


def earliest(line: Line, grid: Grid, round_: Round, start_s: float, chance: random.Random) -> float:
    """UTC epoch seconds before which the line is not submitted; the jitter stays within its own slot.

    The first slot comes when the first children are likely to have started (`start_s` after the plan), or else all whose slot is
    past by then would submit at once. A few lines need not wait for that.
    """
    began = grid.planned_at if round_.number == 1 else round_.began_at
    return began + min(start_s, turn_s(line, grid)) + (slot(line, grid, round_) + chance.random()) / grid.pace


def backoff_s(tries: int, base_s: float, most_s: float, chance: random.Random) -> float:
    """Full jitter: anything from nothing to a bound that doubles with every try (from 1) up to `most_s`."""
    return chance.uniform(0.0, min(most_s, base_s * 2.0 ** min(tries - 1, 30)))


def jittered(seconds: float, chance: random.Random) -> float:
    """Give or take a fifth."""
    return seconds * chance.uniform(0.8, 1.2)
