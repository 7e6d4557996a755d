"""Sends a folder's files to S3, each once, and commits artifacts: last comes the object that lists them.

Files should appear by renaming; names that end in `.tmp` are left out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from agent import snapshot
from agent.engine.engine import Engine
from agent.engine.places import Memory, wasteful
from agent.progress import ProgressFile
from agent.snapshot import RACY_S, UNFINISHED, Changed, FileState
from agent.store import Store
from contract.codec import encode
from contract.commits import Commit, CommittedFile
from contract.keys import BytesPrefix, CommitKind

TRIES, PAUSE_S = 5, 0.5
CORES = 1.0
"""How many processors a commit takes while the training needs them."""


class Folder:
    """One folder of one rank in one attempt, as S3 has it. Not for use by two threads at once."""

    def __init__(
        self,
        engine: Engine,
        folder: Path,
        *,
        kind: CommitKind,
        job: str,
        rank: int,
        note: Callable[[str], None],
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._engine, self._folder, self._kind = engine, folder, kind
        self._rank, self._note, self._now, self._sleep = rank, note, now, sleep
        self._prefix = BytesPrefix(job)
        self._memory = Memory()
        self._foreign: dict[str, tuple[int, int, int]] = {}
        self._said: set[str] = set()

    def adopt(self, files: Iterable[CommittedFile], *, rank: int, here: bool) -> None:
        """Takes note of restored files. Those of this rank are not sent again where they are in this bucket already (`here`);
        those of another rank are not committed by this one as long as they do not change."""
        for file in files:
            seen = FileState.of(file.path, (self._folder / file.path).stat())
            if rank != self._rank:
                self._foreign[file.path] = seen.content
            else:
                self._memory.adopt(seen, file, here=here)

    def look(self) -> list[FileState]:
        """This rank's own files, without a request. Raises Changed where the folder moves under it."""
        return self._own(snapshot.look(self._folder, self._say_once).values())

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all lies in the folder but what was restored of other ranks: not even a file that is still written."""
        return all(file.relative_to(self._folder).as_posix() in self._foreign for file in _files(self._folder))

    @property
    def is_saving(self) -> bool:
        """Whether an unfinished file lies in the folder, or in the one beside it in which the module for trainers writes."""
        beside = self._folder.with_name(f"{self._folder.name}{UNFINISHED}")
        inside = (file.relative_to(self._folder) for file in _files(self._folder))
        return any(_files(beside)) or any(part.endswith(UNFINISHED) for path in inside for part in path.parts)

    def send(
        self, fits: Callable[[Sequence[FileState]], None] = lambda _: None, *, cores: float | None = CORES
    ) -> tuple[CommittedFile, ...]:
        """Sends what S3 lacks of the folder as it is at one moment; returns all of this rank's files. `fits` sees them before anything
        is sent, and raises where they are not what shall be committed. `cores`: the processors that it may use; None for all.

        Raises Changed where files kept changing, and what boto3 raises.
        """
        for attempt in range(1, TRIES + 1):
            try:
                return self._send(fits, cores)
            except Changed as problem:
                if attempt == TRIES:
                    raise
                self._note(f"{self._kind.value}: {problem} during the commit; once more")
                self._sleep(PAUSE_S)
        raise AssertionError("unreachable")

    @property
    def keys(self) -> set[str]:
        """Of the objects that this agent sent or restored."""
        return self._memory.keys

    def deleted(self, keys: Collection[str], left: dict[str, int], listed: Sequence[CommittedFile]) -> None:
        """Takes note of objects that are about to be deleted, and of those that are `left`, with their sizes in bytes. Of packs in
        which little is `listed` any more the next commit sends the rest again."""
        self._memory.forget({*keys, *wasteful(listed, left)})

    def _send(self, fits: Callable[[Sequence[FileState]], None], cores: float | None) -> tuple[CommittedFile, ...]:
        before = snapshot.look(self._folder, self._say_once)
        mine = self._own(before.values())
        fits(mine)
        self._memory.keep(before.values())
        packed = self._kind is CommitKind.CHECKPOINTS
        sent = self._engine.send(
            self._folder,
            mine,
            self._memory,
            pack_key=(lambda digest: self._prefix.pack(self._rank, digest)) if packed else None,
            file_key=self._key,
            cores=cores,
            when_open=lambda: self._rested(before),
        )
        return tuple(sent[one.path] for one in mine)

    def _key(self, name: str, path: str) -> str:
        if self._kind is CommitKind.CHECKPOINTS:
            return self._prefix.checkpoint(self._rank, name, path)
        return self._prefix.artifact(self._rank, path)

    def _rested(self, before: dict[str, FileState]) -> None:
        """Raises Changed unless the folder is as it was: then all that was seen, and is open now, was there at one moment."""
        youngest = max((seen.ctime_ns for seen in before.values()), default=0) / 1e9
        if abs(self._now() - youngest) < RACY_S:
            self._sleep(RACY_S)
        after = snapshot.look(self._folder, lambda _: None)
        if before != after:
            names = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
            raise Changed(f"{names[0]} changed")

    def _own(self, seen: Iterable[FileState]) -> list[FileState]:
        return [one for one in seen if self._foreign.get(one.path) != one.content]

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._note(f"{self._kind.value}: {text}")


def _files(folder: Path) -> Iterator[Path]:
    """Whatever is no folder, links and pipes as well; nothing where there is no such folder."""
    return (Path(parent) / name for parent, _, names in os.walk(folder) for name in names)


class Artifacts:
    """Commits ARTIFACTS_DIR: each commit lists all files, and replaces none before it."""

    def __init__(
        self, store: Store, folder: Folder, *, job: str, attempt: int, rank: int, progress: ProgressFile,
        now: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._store, self._folder, self._prefix = store, folder, BytesPrefix(job)
        self._job, self._attempt, self._rank = job, attempt, rank
        self._progress, self._now = progress, now
        self._seen: Sequence[FileState] = ()
        self.newest: Commit | None = None
        self.newest_key = ""

    def commit(self, *, final: bool = False) -> Commit | None:
        """Makes a commit, unless nothing changed since the last one or the folder is empty. Raises as Folder.send does."""
        seen = self._folder.look()
        if seen == self._seen:
            return None
        files = self._folder.send(cores=None if final else CORES)
        if not files or (self.newest is not None and files == self.newest.files):
            self._seen = seen
            return None
        step = self._progress.checkpoint_step()
        commit = Commit(
            job=self._job,
            attempt=self._attempt,
            rank=self._rank,
            step=step,
            created_at=self._now(),
            final=final,
            files=files,
        )
        key = self._prefix.commit(CommitKind.ARTIFACTS, self._attempt, max(step, 0), self._rank)
        self._store.put(key, encode(commit))
        self._seen, self.newest, self.newest_key = seen, commit, key
        return commit
