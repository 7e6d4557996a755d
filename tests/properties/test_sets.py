"""Whenever everything is killed, also inside any request, the next attempt starts whole, from one step, and not from long ago; and Sync
finds whole what each rank's report would name."""

from __future__ import annotations

import random
from pathlib import Path
from statistics import median

import pytest

from contract.roles import Role, RoleEnd
from tests.node.fakes import FakeS3
from tests.node.folders import EVERY_S, Clock
from tests.properties.rounds import DEEP, numbers
from tests.properties.sets_world import Attempt, Protocol, closed_steps, losses, play_attempts, wrongs

ATTEMPTS = 5
UPLOAD_S = 60.0
"""Requests of a set, with what a trainer saves meanwhile, and those of slower ranks."""


@pytest.mark.parametrize("nodes", [2, pytest.param(4, marks=pytest.mark.at_length)])
@pytest.mark.parametrize("protocol", list(Protocol), ids=lambda one: one.name.lower())
@pytest.mark.parametrize("seed", numbers(3, quick=1))
def test_whatever_is_killed_the_next_attempt_starts_from_one_whole_checkpoint(
    tmp_path: Path, protocol: Protocol, nodes: int, seed: int
) -> None:
    chance, s3, clock = random.Random(f"{protocol.name}{nodes}{seed}"), FakeS3(), Clock()
    play_attempts(
        lambda number: Attempt(tmp_path, s3, number, nodes=nodes, protocol=protocol, chance=chance, clock=clock),
        lambda attempt, before: wrongs(attempt, before, closed_steps(s3), UPLOAD_S),
        chance,
        attempts=ATTEMPTS,
    )


@pytest.mark.parametrize("ends", [RoleEnd.SERVED, RoleEnd.ALONE], ids=lambda one: one.value)
@pytest.mark.parametrize("protocol", [Protocol.NOBODY, Protocol.RANK0], ids=lambda one: one.name.lower())
@pytest.mark.parametrize("seed", numbers(6, quick=2))
def test_so_it_does_beside_roles_that_do_not_end_the_job_also_where_rank_0_alone_commits(
    tmp_path: Path, protocol: Protocol, ends: RoleEnd, seed: int
) -> None:
    chance, s3, clock = random.Random(f"{protocol.name}{ends.value}{seed}"), FakeS3(), Clock()
    roles = (Role(name="chief", count=1), Role(name="other", count=2, ends=ends))
    play_attempts(
        lambda number: Attempt(
            tmp_path, s3, number, nodes=3, protocol=protocol, chance=chance, clock=clock, roles=roles
        ),
        lambda attempt, before: wrongs(attempt, before, closed_steps(s3), UPLOAD_S),
        chance,
        attempts=ATTEMPTS,
    )


@pytest.mark.parametrize(
    "nodes",
    [
        6,
        pytest.param(16, marks=pytest.mark.at_length),
        pytest.param(512, marks=pytest.mark.skipif(not DEEP, reason="minutes")),
    ],
)
@pytest.mark.parametrize(
    "protocol",
    [Protocol.EVERY, pytest.param(Protocol.BARRIER, marks=pytest.mark.at_length)],
    ids=["every", "barrier"],
)
def test_what_a_loss_costs_is_mostly_less_than_an_interval_and_never_much_more(
    tmp_path: Path, protocol: Protocol, nodes: int
) -> None:
    """Saves of 10 to 60 s, and ranks that save at different speed; before, with 16 nodes the median was 6.8 hours."""
    for seed in range(3 if DEEP and nodes == 16 else 1):
        clock, chance = Clock(), random.Random(f"{protocol.name}{nodes}{seed}")
        attempt = Attempt(tmp_path / str(seed), FakeS3(), 1, nodes=nodes, protocol=protocol, chance=chance, clock=clock)
        began, until = clock.now, clock.now + 10 * EVERY_S
        sets = attempt.train(until, tick_s=2.0)
        lost = losses(sets, began, until)
        print(
            f"{nodes} nodes, {protocol.name.lower()}, a save every {attempt.every_s:.0f} s: {len(sets)} sets in 10 intervals, "
            f"lost in the median {median(lost) / EVERY_S:.2f}, at most {max(lost) / EVERY_S:.2f} intervals"
        )
        assert median(lost) <= 1.5 * EVERY_S
        assert max(lost) <= EVERY_S + 2 * attempt.every_s + UPLOAD_S
