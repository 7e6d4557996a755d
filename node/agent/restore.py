"""Restores CHECKPOINT_DIR from the newest complete set of commits whose every file is there and has its digest."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agent.commits import digest_of
from agent.failures import CannotStart, is_full
from agent.retention import RestoreSet, complete_sets
from agent.store import Missing, Store
from contract.codec import Garbled, decode
from contract.commits import Commit, CommittedFile
from contract.keys import BytesPrefix, CommitKind, commit_of

AT_A_TIME = 8


class Unusable(Exception):
    """A set has a file that is missing or differs from its commit; the set before it is tried next."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored to CHECKPOINT_DIR, and from where."""

    step: int
    store: Store
    files: dict[int, tuple[CommittedFile, ...]]
    """By the rank that committed them."""


def restore(
    stores: Sequence[Store], job: str, attempt: int, rank: int, folder: Path, staging: Path, note: Callable[[str], None]
) -> Restored | None:
    """Restores the newest usable set of all earlier attempts in every bucket; None where there is nothing to restore.

    Raises what boto3 raises: a training must not start from the beginning because a bucket could not be read.
    """
    for chosen, store in candidates(stores, job, attempt):
        try:
            commits = [_commit(store, key) for key in chosen.keys]
            files = union(commits, rank)
            _fetch(store, [file for owned in files.values() for file in owned], folder, staging)
        except Unusable as problem:
            note(f"the checkpoint of attempt {chosen.attempt}, step {chosen.step} cannot be used: {problem}")
            continue
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        note(f"restored step {commits[0].step} of attempt {chosen.attempt} from {len(commits)} commits")
        return Restored(commits[0].step, store, files)
    return None


def candidates(stores: Sequence[Store], job: str, attempt: int) -> list[tuple[RestoreSet, Store]]:
    """The complete sets of earlier attempts over all buckets, the newest first."""
    found = []
    for store in stores:
        keys = store.keys(BytesPrefix(job).commits(CommitKind.CHECKPOINTS))
        earlier = [key for key in keys if (place := commit_of(key)) and place[0] < attempt]
        found += [(chosen, store) for chosen in complete_sets(earlier)]
    return sorted(found, key=lambda each: (each[0].attempt, each[0].step), reverse=True)


def union(commits: Sequence[Commit], rank: int) -> dict[int, tuple[CommittedFile, ...]]:
    """Every file of every commit, by owner. Where several ranks committed one path, a node gets its own, else the lowest
    rank's. Raises Unusable for a path that leaves the folder."""
    owners: dict[str, int] = {}
    for commit in sorted(commits, key=lambda each: (each.rank != rank, each.rank)):
        for file in commit.files:
            path = PurePosixPath(file.path)
            if not file.path or path.is_absolute() or ".." in path.parts:
                raise Unusable(f"its path {file.path!r} leaves the folder")
            owners.setdefault(file.path, commit.rank)
    return {commit.rank: tuple(file for file in commit.files if owners[file.path] == commit.rank) for commit in commits}


def _commit(store: Store, key: str) -> Commit:
    try:
        return decode(Commit, store.get(key))
    except (Missing, Garbled) as problem:
        raise Unusable(str(problem)) from None


def _fetch(store: Store, files: Sequence[CommittedFile], folder: Path, staging: Path) -> None:
    """Fetches all files or none: they move into `folder` once every one of them has been checked."""

    def fetch(file: CommittedFile) -> None:
        target = staging / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            store.fetch(file.key, target)
        except Missing as problem:
            raise Unusable(str(problem)) from None
        if target.stat().st_size != file.size or digest_of(target) != file.sha256:
            raise Unusable(f"{file.path!r} is not what was committed")
        target.chmod(file.mode & 0o777)

    try:
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            list(pool.map(fetch, files))
    except OSError as problem:
        if is_full(problem):
            raise CannotStart("the disk is full of the restored checkpoint: ask for a larger volume_gb") from problem
        raise
    for file in files:
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(staging / file.path, target)  # noqa: PTH105
