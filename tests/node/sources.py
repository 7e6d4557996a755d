"""A job that has ended, and one that begins from its checkpoint."""

from __future__ import annotations

from pathlib import Path

from contract.jobs import Scope, SourceCheckpoint
from tests.node.fakes import FakeS3
from tests.node.folders import BUCKET, EVERY_S, Rank

SOURCE, OWN = "job-1", "job-2"


def begun_from(number: int = 999_999, attempt: int = 1, step: int = 0) -> SourceCheckpoint:
    return SourceCheckpoint(job=SOURCE, region="eu-central-1", bucket=BUCKET, attempt=attempt, number=number, step=step)


def trained(root: Path, s3: FakeS3, nodes: int = 1, *steps: int) -> list[Rank]:
    """A job that has ended, with a checkpoint of each step (and of the last one once more, at its end)."""
    every = [
        Rank(root, s3, rank, nodes=nodes, scope=Scope.SHARDS if nodes > 1 else Scope.AUTO) for rank in range(nodes)
    ]
    for rank in every:
        rank.clock = every[0].clock
    for step in steps or (100,):
        every[0].clock.now += EVERY_S
        for rank in every:
            rank.save(step, **{f"shard-{rank.rank}": f"{step} of {rank.rank}"})
        for rank in every:
            rank.clock.now += 300
            rank.checkpoints.tick()
    for rank in every:
        rank.checkpoints.finish()
    return every


def begins(root: Path, s3: FakeS3, attempt: int = 1, resume: SourceCheckpoint | None = None, **more: object) -> Rank:
    return Rank(root, s3, attempt=attempt, resume=resume or begun_from(), name=OWN, **more)  # type: ignore[arg-type]
