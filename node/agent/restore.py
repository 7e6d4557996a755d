"""Restores CHECKPOINT_DIR from the newest closed set whose every file is there and has its digest."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

from agent.bringing import Bringing
from agent.engine.engine import Engine
from agent.engine.wanted import Unusable, check
from agent.failures import CannotStart, is_full
from agent.position import Position
from agent.retention import RestoreSet, history
from agent.store import Missing, Store, TooLong
from contract.codec import Garbled, decode, encode
from contract.commits import (
    MOST_DOCUMENT,
    MOST_SET,
    CheckpointSet,
    Commit,
    CommittedFolder,
    CommittedLink,
    Contents,
    Missed,
)
from contract.jobs import Selection
from contract.keys import BytesPrefix, CommitKind

T = TypeVar("T")
AT_A_TIME = 8
"""Documents that are read side by side: there is one of each rank."""
MOST_PARTS = 1000
"""Parts of another job's set, whose number of ranks is not known here: no job has more nodes."""
MOST_TOGETHER = 256 * 1024**2
"""Bytes of a set's documents together: 800,000 files. They are in memory at once, and those of another job may be of any length."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored to CHECKPOINT_DIR, and from where."""

    step: int
    name: str
    """The same for every rank that restored this set: `<bucket>/<attempt>/<number of the set>`."""
    here: bool
    """Whether S3 has the files where this attempt would send them."""
    contents: dict[int, Contents]
    """By the rank that commits them again as soon as they change."""
    named: bool
    """Whether this rank's own trainer had named the checkpoint."""


def restore(
    stores: Sequence[Store], place: Position, folder: Path, staging: Path, note: Callable[[str], None],
    *, source: Store | None = None, now: Callable[[], float] = time.time, pause: Callable[[float], None] = time.sleep,
) -> Restored | None:  # fmt: skip
    """Restores the newest usable set of all earlier attempts in every bucket. Where none was ever closed: what the job begins with, or
    None.

    `stores`: the bucket of the node's own region first. What lies in another one is brought there once for all nodes. `source`: the
    bucket of the checkpoint with which the job begins (`job.resume`), None where it begins with nothing.

    A rank that reads its own part alone writes down which set it cannot use, because others do not see what is wrong with it: the next
    attempt starts from one that all can use.

    Raises CannotStart where sets were closed, and none can be used; and what boto3 raises: a training must not start from the beginning
    because a bucket could not be read.
    """
    found = candidates(stores, place.job.id, place.attempt)
    own = place.job.checkpoint_restore is Selection.OWN
    for chosen, store in found.sets:
        try:
            step, commits = _opened(store, chosen, {0, place.rank} if own else None, most=place.job.nodes)
            contents = union(commits, place.rank)
            brought = frozenset[str]()
            if store.bucket != stores[0].bucket:
                brought = Bringing(near=stores[0], far=store, place=place, now=now, pause=pause, note=note).bring(
                    commits
                )
            _fetch(store, list(contents.values()), folder, staging, stores[0], brought, note)
        except Unusable as problem:
            note(f"the checkpoint of attempt {chosen.attempt}, {chosen.order} cannot be used: {problem}")
            if own and chosen.closed:
                _condemn(store, place, chosen, str(problem))
            continue
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        which = f"step {step}" if step >= 0 else "the checkpoint"
        note(f"restored {which} of attempt {chosen.attempt} from {len(commits)} ranks")
        named = any(one.named for one in commits if one.rank == place.rank)
        name = f"{store.bucket}/{chosen.attempt}/{chosen.order}"
        return Restored(step, name, store.bucket == stores[0].bucket, contents, named)
    if found.sets or found.unusable:
        count = len(found.sets) + found.unusable
        raise CannotStart(
            f"none of the {count} checkpoints of earlier attempts can be used: the node's log says what is wrong with each"
        )
    if found.commits:
        note(f"{found.commits} commits of earlier attempts are parts of checkpoints that were never whole on all ranks")
    return None if source is None else _begun(source, place, folder, staging, note)


def _begun(store: Store, place: Position, folder: Path, staging: Path, note: Callable[[str], None]) -> Restored:
    """Restores the set of another job that the job names, or one before it. Raises CannotStart where none of them can be used: a training
    that is to go on must not start from the beginning."""
    wanted = place.job.resume
    assert wanted is not None
    ranks = {0, place.rank} if place.job.checkpoint_restore is Selection.OWN else None
    known = history(store.keys(BytesPrefix(wanted.job).commits(CommitKind.CHECKPOINTS)))
    sets = [
        one for one in known.restorable() if one.closed and (one.attempt, one.order) <= (wanted.attempt, wanted.number)
    ]
    for chosen in sets:
        try:
            step, commits = _opened(store, chosen, ranks, most=MOST_PARTS)
            contents = union(commits, place.rank)
            _fetch(store, list(contents.values()), folder, staging, store, (), note)
        except Unusable as problem:
            note(
                f"the checkpoint of job {wanted.job}, attempt {chosen.attempt}, {chosen.order} cannot be used: {problem}"
            )
            continue
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        which = f"step {step}" if step >= 0 else "the checkpoint"
        note(f"begins with {which} of job {wanted.job}, attempt {chosen.attempt}, from {len(commits)} ranks")
        name = f"{store.bucket}/{wanted.job}/{chosen.attempt}/{chosen.order}"
        return Restored(step, name, False, _reassigned(contents, place.ranks), False)
    raise CannotStart(
        f"no checkpoint of job {wanted.job} can be used, with which this job begins (resume_from): the node's log says what is wrong with "
        f"each of the {len(sets)} that are left"
    )


def _reassigned(contents: dict[int, Contents], ranks: int) -> dict[int, Contents]:
    """Gives rank 0 what is of ranks that this job does not have."""
    own = {rank: each for rank, each in contents.items() if 0 < rank < ranks}
    first = [each for rank, each in contents.items() if rank == 0 or rank >= ranks]
    if not first:
        return own
    together = Contents(
        files=tuple(file for each in first for file in each.files),
        links=tuple(link for each in first for link in each.links),
        folders=tuple(folder for each in first for folder in each.folders),
    )
    return {0: together, **own}


def choose_regions(own: str, places: Collection[str], ran_in: Collection[str]) -> list[str]:
    """Returns the regions whose buckets may have checkpoints, the node's own first: those in which earlier attempts ran, or every region of
    the job where they are unknown (`ran_in` is empty). A region in which the job never ran may be away without holding up a recovery."""
    there = set(places) & set(ran_in) or set(places)
    return [own, *sorted(there - {own})]


@dataclass(frozen=True, slots=True)
class Candidates:
    """What earlier attempts left over all buckets: the sets, the newest first; how many more were closed and proved to be of no use; how
    many commits there are at all."""

    sets: list[tuple[RestoreSet, Store]]
    unusable: int
    commits: int


def candidates(stores: Sequence[Store], job: str, attempt: int) -> Candidates:
    """What attempts before this one left."""
    sets, unusable, commits = list[tuple[RestoreSet, Store]](), 0, 0
    for store in stores:
        known = history(store.keys(BytesPrefix(job).commits(CommitKind.CHECKPOINTS)))
        commits += known.commits_before(attempt)
        unusable += sum(of < attempt for of, _ in known.unusable)
        sets += [(chosen, store) for chosen in known.restorable() if chosen.attempt < attempt]
    return Candidates(sorted(sets, key=lambda each: (each[0].attempt, each[0].order), reverse=True), unusable, commits)


def _opened(store: Store, chosen: RestoreSet, ranks: Collection[int] | None, most: int) -> tuple[int, list[Commit]]:
    """The step of a set and its parts, those of `ranks` where these are given; it has `most` parts at most. Raises Unusable."""
    if not chosen.closed:
        commits = _documents(store, chosen.keys)
        return commits[0].step, commits
    closing = _decode(CheckpointSet, _read(store, chosen.keys[0], MOST_SET))
    if len(closing.parts) > most:
        raise Unusable(f"it has {len(closing.parts):,} parts; allowed: one of each rank, up to {most:,}")
    keys = {rank: key for rank, key in enumerate(closing.parts) if key and (ranks is None or rank in ranks)}
    commits = _documents(store, list(keys.values()))
    if [one.rank for one in commits] != list(keys):
        raise Unusable(f"its parts are of other ranks than {', '.join(map(str, keys))}")
    return closing.step, commits


def _documents(store: Store, keys: Sequence[str]) -> list[Commit]:
    """Reads commits. Raises Unusable, also where they are too long together."""
    room = _Room(MOST_TOGETHER)

    def read(key: str) -> Commit:
        room.check()
        document = _read(store, key)
        room.take(len(document))
        return _decode(Commit, document)

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return list(pool.map(read, keys))


class _Room:
    """Bytes that may still be read. Safe to use from any thread."""

    def __init__(self, most: int) -> None:
        self._most, self._left, self._turn = most, most, threading.Lock()

    def take(self, size: int) -> None:
        """Raises Unusable where there were fewer."""
        with self._turn:
            self._left -= size
        self.check()

    def check(self) -> None:
        """Raises Unusable where there are none any more."""
        if self._left < 0:
            raise Unusable(f"its documents have more than {self._most:,} bytes together")


def _condemn(store: Store, place: Position, chosen: RestoreSet, reason: str) -> None:
    """Writes down that this rank cannot use a set, so that no rank restores it any more."""
    key = BytesPrefix(place.job.id).unusable(chosen.attempt, chosen.order)
    store.put(key, encode(Missed(rank=place.rank, reason=reason)))


def union(commits: Sequence[Commit], rank: int) -> dict[int, Contents]:
    """What every commit has, by owner. Where several ranks committed one path, a node gets its own, else the lowest rank's. A link of one
    rank is left out where another has a folder: bytes come first."""
    named = [one.path for commit in commits for one in (*commit.files, *commit.links, *commit.folders)]
    above = {str(parent) for path in named for parent in PurePosixPath(path).parents}
    above |= {folder.path for commit in commits for folder in commit.folders}
    owners: dict[str, int] = {}
    for commit in sorted(commits, key=lambda each: (each.rank != rank, each.rank)):
        for one in (*commit.files, *(link for link in commit.links if link.path not in above), *commit.folders):
            owners.setdefault(one.path, commit.rank)
    return {
        commit.rank: Contents(
            files=tuple(file for file in commit.files if owners[file.path] == commit.rank),
            links=tuple(link for link in commit.links if link.path not in above and owners[link.path] == commit.rank),
            folders=tuple(folder for folder in commit.folders if owners[folder.path] == commit.rank),
        )
        for commit in commits
    }


def _read(store: Store, key: str, most: int = MOST_DOCUMENT) -> bytes:
    try:
        return store.get(key, most=most)
    except (Missing, TooLong) as problem:
        raise Unusable(str(problem)) from None


def _decode(kind: type[T], document: bytes) -> T:
    try:
        return decode(kind, document)
    except Garbled as problem:
        raise Unusable(str(problem)) from None


def _fetch(
    store: Store, contents: Sequence[Contents], folder: Path, staging: Path, near: Store, copied: Collection[str],
    note: Callable[[str], None],
) -> None:  # fmt: skip
    """Fetches all files or none: they move into `folder` once every one of them has been checked. Those whose objects were `copied` come
    from the bucket `near`; where one of these differs from what was committed, all come from `store`."""
    files = [file for each in contents for file in each.files]
    links = [link for each in contents for link in each.links]
    folders = [one for each in contents for one in each.folders]
    check(files, links, folders)
    try:
        try:
            Engine(near, note=note).fetch([file for file in files if file.key in copied], staging)
        except Unusable as problem:
            note(f"the copy in {near.bucket} cannot be used: {problem}")
            shutil.rmtree(staging, ignore_errors=True)
            copied = ()
        Engine(store, note=note).fetch([file for file in files if file.key not in copied], staging)
    except OSError as problem:
        if is_full(problem):
            raise CannotStart("the restored checkpoint fills the disk: ask for a larger volume_gb") from problem
        raise
    for file in sorted(files, key=lambda each: each.mtime_us):  # so that their change times have the same order
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(staging / file.path, target)  # noqa: PTH105
    _finish(folder, links, folders)


def _finish(folder: Path, links: Sequence[CommittedLink], folders: Sequence[CommittedFolder]) -> None:
    """Makes links and empty folders, and then gives each folder its time: what comes into a folder dates it anew. No path leads through a
    link, which `check` has shown."""
    for one in folders:
        (folder / one.path).mkdir(parents=True, exist_ok=True)
    for link in links:
        place = folder / link.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(link.target)
    for one in folders:
        place = folder / one.path
        place.chmod(one.mode & 0o777 | 0o700)
        if one.mtime_us:
            os.utime(place, ns=(one.mtime_us * 1000, one.mtime_us * 1000))
