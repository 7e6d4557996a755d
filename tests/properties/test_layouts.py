"""Whenever everything is killed, also inside any request and inside any save in place, what comes back is a whole checkpoint of the
framework, the newest that could be sent."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.node.fakes import FakeS3
from tests.node.folders import Clock
from tests.node.layout_worlds import LAYOUTS
from tests.properties.layouts_world import LayoutAttempt, find_wrongs
from tests.properties.rounds import DEEP, numbers
from tests.properties.sets_world import closed_steps, play_attempts

ATTEMPTS = 5
UPLOAD_S = 120.0
"""Requests of a set, with what a trainer saves meanwhile, those of slower ranks, and rest."""


@pytest.mark.parametrize(
    "nodes", [pytest.param(1, marks=pytest.mark.at_length), 2, pytest.param(4, marks=pytest.mark.at_length)]
)
@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("seed", numbers(9 if DEEP else 3, quick=1))
def test_whatever_is_killed_the_next_attempt_starts_from_a_whole_checkpoint_of_its_framework(
    tmp_path: Path, layout: str, nodes: int, seed: int
) -> None:
    chance, s3, clock = random.Random(f"{layout}{nodes}{seed}"), FakeS3(), Clock()
    play_attempts(
        lambda number: LayoutAttempt(tmp_path, s3, number, nodes=nodes, layout=layout, chance=chance, clock=clock),
        lambda attempt, before: find_wrongs(attempt, before, closed_steps(s3), UPLOAD_S),
        chance,
        attempts=ATTEMPTS,
    )
