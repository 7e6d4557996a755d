"""The roles of a job's nodes: which ranks each has, what it runs there, and what the end of its command means to the job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from contract.containers import Container

EVALUATOR = "evaluator"
"""The role that TensorFlow's documentation keeps out of the cluster: no node of it talks to that role."""


class RoleEnd(str, Enum):
    """What the end of a role's command means to the job."""

    JOB = "job"
    """The job is done once every node of each such role has ended with 0; another exit code ends it."""
    SERVED = "served"
    """It serves the others until the job is done, and is then stopped; its own end before that ends the attempt."""
    FREELY = "freely"
    """It helps the others, may end at any time with any exit code, and is stopped once the job is done."""
    ALONE = "alone"
    """It may fail, and is waited for once the job is done."""

    @classmethod
    def of_later_version(cls) -> RoleEnd:
        """No end of it passes unjudged."""
        return cls.JOB


OTHERS = tuple(end for end in RoleEnd if end is not RoleEnd.JOB)
"""The ends that do not decide when the job is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """Some nodes of a job, of consecutive ranks."""

    name: str
    count: int
    ends: RoleEnd = RoleEnd.JOB
    command: tuple[str, ...] = ()
    """Empty where the entry point of the role's image runs."""
    container: Container | None = None
    """None where the role runs on the machine's own image."""
    checkpoints: bool | None = None
    """What the request says of its files; None where it says nothing."""

    @property
    def has_checkpoints(self) -> bool:
        """Whether each of its nodes has to have files where the job's `checkpoint_scope` is `shards`."""
        return self.ends is RoleEnd.JOB if self.checkpoints is None else self.checkpoints

    @property
    def is_spare(self) -> bool:
        """Whether a checkpoint is whole without its files once its node has ended, and the last one of a job that is done in any case.
        Those of a server may be the half of it, unless the request says that they are not."""
        if self.ends is RoleEnd.SERVED:
            return self.checkpoints is False
        return self.ends is not RoleEnd.JOB

    @property
    def is_in_cluster(self) -> bool:
        """Whether the others may talk to it: TensorFlow's cluster has no evaluator."""
        return self.ends is not RoleEnd.ALONE and self.name != EVALUATOR


@dataclass(frozen=True, slots=True)
class RolePlace:
    """A rank's place within its role."""

    role: Role
    index: int
    """From 0."""


def find_place(roles: Sequence[Role], rank: int) -> RolePlace | None:
    """Returns the rank's place; None in a job without roles, and for a rank that no role has."""
    for role in roles:
        if rank < role.count:
            return RolePlace(role, rank)
        rank -= role.count
    return None


def list_ranks(roles: Sequence[Role], *ends: RoleEnd) -> tuple[int, ...]:
    """Returns the ranks of the roles that end in one of these ways."""
    every = (role for role in roles for _ in range(role.count))
    return tuple(rank for rank, role in enumerate(every) if role.ends in ends)


def name_place(roles: Sequence[Role], rank: int) -> str:
    """Returns the role of a rank and its place there, as in `ps 0`; empty in a job without roles."""
    place = find_place(roles, rank)
    return f"{place.role.name} {place.index}" if place else ""


def name_rank(roles: Sequence[Role], rank: int) -> str:
    """Returns how people read of a rank: `rank 3`, and in a job with roles `rank 3 (ps 0)`."""
    return f"rank {_name_number(roles, rank)}"


def name_ranks(roles: Sequence[Role], ranks: Sequence[int]) -> str:
    """Returns how people read of several ranks: `ranks 1, 3`, and in a job with roles `ranks 1 (worker 0), 3 (ps 0)`."""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(_name_number(roles, rank) for rank in ranks)}"


def name_author(roles: Sequence[Role], author: str) -> str:
    """Returns how people read who gave an order: `attendant`, or the rank of a node."""
    word, _, number = author.partition(" ")
    return name_rank(roles, int(number)) if word == "rank" and number.isdecimal() else author


def _name_number(roles: Sequence[Role], rank: int) -> str:
    place = name_place(roles, rank)
    return f"{rank} ({place})" if place else str(rank)
