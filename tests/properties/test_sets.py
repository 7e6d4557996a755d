"""Whenever everything is killed, also inside any request, the next attempt starts whole, from one step, and not from long ago."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.node.fakes import FakeS3
from tests.node.folders import EVERY_S, Clock
from tests.properties.sets_world import Attempt, Protocol, closed_steps, wrongs

ATTEMPTS = 5
UPLOAD_S = 60.0
"""Requests of a set, with what a trainer saves meanwhile, and those of slower ranks."""


@pytest.mark.parametrize("nodes", [2, 4])
@pytest.mark.parametrize("protocol", list(Protocol), ids=lambda one: one.name.lower())
@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_killed_the_next_attempt_starts_from_one_whole_checkpoint(
    tmp_path: Path, protocol: Protocol, nodes: int, seed: int
) -> None:
    chance, s3, clock = random.Random(f"{protocol.name}{nodes}{seed}"), FakeS3(), Clock()
    killed: Attempt | None = None
    for number in range(1, ATTEMPTS + 1):
        attempt = Attempt(tmp_path, s3, number, nodes=nodes, protocol=protocol, chance=chance, clock=clock)
        if killed is not None:
            assert wrongs(attempt, killed.ended(), closed_steps(s3), UPLOAD_S) == [], f"attempt {number}"
        attempt.run(clock.now + chance.uniform(0.5, 3.0) * EVERY_S, chance.randint(1, 60))
        if chance.random() < 0.4:
            attempt.stop(chance.choice([None, 0, nodes - 1]))
        killed = attempt
