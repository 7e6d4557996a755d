"""Reads which checkpoints a job has closed: documents that the nodes wrote, of which no more is read than a good job has."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import islice

from aws_lambda_powertools import Logger

from aws.s3 import Bucket, ObjectTooLarge
from contract.codec import Garbled, decode
from contract.commits import MOST_SET, CheckpointSet, is_closed
from contract.keys import UNUSABLE, BytesPrefix, CommitKind, set_of

logger = Logger(service="checkpoints")
MOST_KEYS = 20_000
"""Keys of sets that are listed. A node of each of 1,000 ranks has a key in each set, and three closed sets stay."""
MOST_SETS = 3
"""Sets that are read, the newest first, unless the caller names another number: as many stay."""


@dataclass(frozen=True, slots=True)
class ClosedSet:
    """A closed set, which a new attempt may restore."""

    attempt: int
    number: int
    step: int
    """-1 where the trainer tells none."""
    closed_at: float | None = field(default=None, compare=False)
    """By AWS's clock, UTC epoch seconds; for people."""


@dataclass(frozen=True, slots=True)
class FoundSets:
    """The closed sets of a job in a bucket."""

    closed: tuple[ClosedSet, ...] = ()
    """The newest first."""
    garbled: int = 0
    """How many more are closed by a document that cannot be read."""


def find_closed_sets(bucket: Bucket, job: str, attempt: int | None = None, *, most: int = MOST_SETS) -> FoundSets:
    """Returns the newest closed sets of the job in this bucket, of one attempt where it is given; at most `most`. Those that a
    rank missed or could not use are left out: no node restores them. Raises ClientError or BotoCoreError where S3 does not answer."""
    prefix = BytesPrefix(job)
    listed = islice(bucket.listed(prefix.commits(CommitKind.CHECKPOINTS, attempt)), MOST_KEYS)
    names = defaultdict[tuple[int, int], set[str]](set)
    for key, _, _ in listed:
        if found := set_of(key):
            names[found.attempt, found.number].add(found.name)
    closed = [place for place, of_set in names.items() if is_closed(of_set) and UNUSABLE not in of_set]
    sets, garbled = list[ClosedSet](), 0
    for of, number in sorted(closed, reverse=True)[:most]:
        try:
            body = bucket.get(prefix.closed(of, number), most=MOST_SET)
            if body is not None:
                closed_set = decode(CheckpointSet, body)
                sets.append(ClosedSet(of, number, closed_set.step, closed_set.closed_at))
        except (Garbled, ObjectTooLarge) as problem:
            garbled += 1
            logger.warning("a set that cannot be read", job=job, attempt=of, number=number, problem=str(problem))
    return FoundSets(tuple(sets), garbled)
