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
    """It serves the others until the job is done, and is then stopped; its exit code says nothing."""
    ALONE = "alone"
    """It may fail, and is waited for once the job is done."""

    @classmethod
    def of_later_version(cls) -> RoleEnd:
        """No end of it passes unjudged."""
        return cls.JOB


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
    checkpoints: bool = True
    """Whether each of its nodes has to have files where the job's `checkpoint_scope` is `shards`."""

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
