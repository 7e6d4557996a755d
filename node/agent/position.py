"""Whose checkpoints are committed and restored, and when: a rank in an attempt of a job."""

from __future__ import annotations

from dataclasses import dataclass

from contract.jobs import Job, Scope
from contract.roles import OTHERS, find_place, list_ranks, name_rank

PATIENCE_S = 60.0
"""The least time after which a rank that cannot answer a set says so, and after which the next one may be opened."""


@dataclass(frozen=True)
class Position:
    """Whose checkpoints these are."""

    job: Job
    attempt: int
    rank: int

    @property
    def ranks(self) -> int:
        """How many ranks answer."""
        return 1 if self.job.checkpoint_scope is Scope.RANK0 else self.job.nodes

    @property
    def must_have(self) -> frozenset[int]:
        """Ranks without whose files no set is closed: where the request says that checkpoints are shards, all but roles without."""
        if self.job.checkpoint_scope is not Scope.SHARDS:
            return frozenset()
        places = {rank: find_place(self.job.roles, rank) for rank in range(self.job.nodes)}
        return frozenset(rank for rank, place in places.items() if place is None or place.role.has_checkpoints)

    @property
    def may_leave(self) -> tuple[int, ...]:
        """Those that answer, and whose ends the job does not need: it may be done without them."""
        return tuple(rank for rank in list_ranks(self.job.roles, *OTHERS) if rank < self.ranks)

    @property
    def spare(self) -> tuple[int, ...]:
        """Those of them without whose files the last checkpoint is whole: whatever becomes of these, it is that of the others. Once the
        command of one has ended, it has nothing of any later set."""
        return tuple(rank for rank in self.may_leave if (at := find_place(self.job.roles, rank)) and at.role.is_spare)

    def name(self, rank: int) -> str:
        """Returns what people read of a rank."""
        return name_rank(self.job.roles, rank)

    @property
    def begins_with_files(self) -> bool:
        """Whether there may be a checkpoint to restore."""
        return self.attempt > 1 or self.job.resume is not None

    @property
    def every_s(self) -> float:
        return self.job.checkpoint_minutes * 60

    @property
    def patience_s(self) -> float:
        return max(PATIENCE_S, self.every_s)

    def boundary(self, now: float) -> float:
        """The first boundary after `now`: they are common to all ranks."""
        passed = (now - self.job.admitted_at) // self.every_s
        return self.job.admitted_at + (passed + 1) * self.every_s
