"""Brings a checkpoint's objects into the bucket of the nodes' own region: each object crosses once, however many nodes need it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from agent.position import Position
from agent.store import Store
from contract.commits import Commit
from contract.jobs import Selection
from contract.keys import BytesPrefix

AT_A_TIME = 4
"""Objects that a node has copied side by side; S3 copies the parts of each side by side as well."""


@dataclass(frozen=True, kw_only=True)
class Bringing:
    """What all ranks of an attempt do together, without a word to each other: each has its share of the objects copied by S3, and sees in
    the bucket when the others have."""

    near: Store
    far: Store
    place: Position
    now: Callable[[], float]
    pause: Callable[[float], None]
    """Sleeps for so many seconds; may raise, to end the wait."""
    note: Callable[[str], None]

    def bring(self, commits: Sequence[Commit]) -> frozenset[str]:
        """Returns the keys of the objects that are in the near bucket now. Any other the node fetches from the far one.

        Waits for the ranks that copy the rest, as long as objects arrive within the time in which a node boots: a rank that stays out
        for longer ends the attempt anyway.
        """
        wanted = sorted(shared(commits, self.place))
        if not wanted:
            return frozenset()
        there = self._present(wanted)
        mine = [key for number, key in enumerate(wanted) if number % self.place.job.nodes == self.place.rank]
        self.note(
            f"{len(wanted) - len(there)} objects of the checkpoint are copied from {self.far.bucket} to {self.near.bucket} for all nodes"
        )
        if problem := self._copied([key for key in mine if key not in there]):
            self.note(
                f"the checkpoint is fetched from {self.far.bucket}: S3 could not copy it ({type(problem).__name__}: {problem})"
            )
            return self._present(wanted)
        return self._arrived(wanted)

    def _copied(self, keys: Sequence[str]) -> BaseException | None:
        """Has the objects copied. Returns the first problem: what keeps S3 from one copy mostly keeps it from all."""
        with ThreadPoolExecutor(AT_A_TIME, "bringer") as pool:
            jobs: list[Future[None]] = [pool.submit(self.near.copy_from, self.far, key) for key in keys]
            done, left = wait(jobs, return_when="FIRST_EXCEPTION")
            for job in left:
                job.cancel()
        return next((problem for job in done if (problem := job.exception())), None)

    def _arrived(self, wanted: Collection[str]) -> frozenset[str]:
        timing = self.place.job.timing
        there, news_at = self._present(wanted), self.now()
        while len(there) < len(wanted) and self.now() < news_at + timing.boot_allowance_s:
            self.pause(timing.orders_every_s)
            before, there = there, self._present(wanted)
            if len(there) > len(before):
                news_at = self.now()
        if len(there) < len(wanted):
            self.note(
                f"{len(wanted) - len(there)} objects were not copied from {self.far.bucket}: they are fetched there"
            )
        return there

    def _present(self, wanted: Collection[str]) -> frozenset[str]:
        return frozenset(self.near.keys(f"{BytesPrefix(self.place.job.id).root}checkpoints/")) & frozenset(wanted)


def shared(commits: Sequence[Commit], place: Position) -> set[str]:
    """Keys of the objects that every rank needs, and therefore knows: of all commits, or of rank 0's where a rank reads its own besides.

    Only such under the job's checkpoints: whoever runs a job can write a commit that names anything.
    """
    if place.job.nodes == 1:
        return set()
    own = place.job.checkpoint_restore is Selection.OWN
    ours = [commit for commit in commits if commit.rank == 0 or not own]
    under = BytesPrefix(place.job.id)
    return {file.key for commit in ours for file in commit.files if file.key.startswith(under.checkpoints(commit.rank))}
