"""Whatever a trainer that names nothing writes beside its weights: no set has half a file, and sets close while a whole one is there."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest

from tests.properties.rounds import DEEP, numbers
from tests.properties.trainers_world import Cut, World, draw_style


@pytest.mark.parametrize("seed", numbers(200 if DEEP else 50, quick=8))
def test_sets_of_any_trainer_are_whole_and_close_within_two_intervals(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    world = World(tmp_path, draw_style(chance), chance)
    world.left = chance.randint(1, 20_000) if chance.random() < 0.5 else -1
    with suppress(Cut):
        world.run(chance.uniform(3.0, 7.0) * world.style.every_s)
    late = world.list_late() if world.style.has_to_close else []
    if chance.random() < 0.5:
        world.stop()
    assert (world.list_torn(), world.list_mixed(), late) == ([], [], []), world.style
