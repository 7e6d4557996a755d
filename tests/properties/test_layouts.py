"""Whenever everything is killed, also inside any request and inside any save in place, what comes back is a whole checkpoint of the
framework, the newest that could be sent."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.node.fakes import FakeS3
from tests.node.folders import EVERY_S, Clock
from tests.node.layout_worlds import LAYOUTS
from tests.properties.layouts_world import LayoutAttempt, find_wrongs
from tests.properties.rounds import numbers
from tests.properties.sets_world import closed_steps, unsynced

ATTEMPTS = 5
UPLOAD_S = 120.0
"""Requests of a set, with what a trainer saves meanwhile, those of slower ranks, and rest."""


@pytest.mark.parametrize("nodes", [1, 2, 4])
@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("seed", numbers(9, quick=1))
def test_whatever_is_killed_the_next_attempt_starts_from_a_whole_checkpoint_of_its_framework(
    tmp_path: Path, layout: str, nodes: int, seed: int
) -> None:
    chance, s3, clock = random.Random(f"{layout}{nodes}{seed}"), FakeS3(), Clock()
    killed: LayoutAttempt | None = None
    for number in range(1, ATTEMPTS + 1):
        attempt = LayoutAttempt(tmp_path, s3, number, nodes=nodes, layout=layout, chance=chance, clock=clock)
        if killed is not None:
            assert find_wrongs(attempt, killed.ended(), closed_steps(s3), UPLOAD_S) == [], f"attempt {number}"
        attempt.run(clock.now + chance.uniform(0.5, 3.0) * EVERY_S, chance.randint(1, 60))
        if chance.random() < 0.4:
            attempt.stop(chance.choice([None, 0, nodes - 1]))
        assert unsynced(attempt) == [], f"attempt {number}"
        killed = attempt
