"""Decides when a line may be submitted, and how long to wait after a refusal, so that 10,000 children together keep one pace."""

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
    """The line's place in the order of its region: the plan's order in round 1 and in rounds about as long, the round's own order in
    shorter ones. All children of a region choose alike, so no two lines of a region share a slot."""
    if round_.number == 1 or len(round_.work) > grid.regions.get(line.region, 0):
        return line.slot
    return list(round_.work).index(line.index)


def turn_s(line: Line, grid: Grid) -> float:
    """How long all lines of the region take at the grid's pace."""
    return grid.regions.get(line.region, grid.lines) / grid.pace


def earliest(line: Line, grid: Grid, round_: Round, start_s: float, chance: random.Random) -> float:
    """UTC epoch seconds before which the line is not submitted; the jitter stays within its own slot.

    The first slot begins when the first children have probably started (`start_s` after the plan): if it began earlier, all whose
    slot had passed by then would submit at once. A grid of few lines waits less.
    """
    began = grid.planned_at if round_.number == 1 else round_.began_at
    return began + min(start_s, turn_s(line, grid)) + (slot(line, grid, round_) + chance.random()) / grid.pace


def backoff_s(tries: int, base_s: float, most_s: float, chance: random.Random) -> float:
    """Full jitter: anything from nothing to a bound that doubles with every try (from 1) up to `most_s`."""
    return chance.uniform(0.0, min(most_s, base_s * 2.0 ** min(tries - 1, 30)))


def jittered(seconds: float, chance: random.Random) -> float:
    """`seconds`, a random fifth more or less."""
    return seconds * chance.uniform(0.8, 1.2)
