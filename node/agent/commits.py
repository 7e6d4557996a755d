"""Sends a folder's files to S3, each once, and commits artifacts: last comes the object that lists them.

Files should appear by renaming; names that end in `.tmp` are left out.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agent import snapshot
from agent.progress import ProgressFile
from agent.snapshot import Changed, FileState
from agent.store import MIB, Store
from contract.codec import encode
from contract.commits import Commit, CommittedFile
from contract.keys import BytesPrefix, CommitKind

TRIES, PAUSE_S = 5, 0.5
SMALL = 16 * MIB
"""Files up to this size are read once, hashed and sent from memory."""
AT_A_TIME = 8
"""Small files sent side by side; large ones are sent one after the other, each in parallel parts."""


class Folder:
    """One folder of one rank in one attempt, as S3 has it. Not for use by two threads at once."""

    def __init__(
        self,
        store: Store,
        folder: Path,
        staging: Path,
        *,
        kind: CommitKind,
        job: str,
        rank: int,
        note: Callable[[str], None],
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store, self._folder, self._staging, self._kind = store, folder, staging, kind
        self._rank, self._note, self._now, self._sleep = rank, note, now, sleep
        self._prefix = BytesPrefix(job)
        self._sent: dict[str, str] = {}
        self._digests: dict[FileState, str] = {}
        self._foreign: dict[str, FileState] = {}
        self._said: set[str] = set()

    def adopt(self, files: Iterable[CommittedFile], *, rank: int, here: bool) -> None:
        """Takes note of restored files. Those of this rank are not sent again where they are in this bucket already (`here`);
        those of another rank are not committed by this one as long as they do not change."""
        for file in files:
            seen = FileState.of(file.path, (self._folder / file.path).stat())
            if rank != self._rank:
                self._foreign[file.path] = seen
                continue
            self._digests[seen] = file.sha256
            if here:
                self._sent[file.key] = file.sha256

    def look(self) -> list[FileState]:
        """This rank's own files, without a request. Raises Changed where the folder moves under it."""
        return self._own(snapshot.look(self._folder, self._say_once).values())

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all lies in the folder but what was restored of other ranks: not even a file that is still written."""
        known = set(self._foreign)
        return all(
            (Path(parent) / name).relative_to(self._folder).as_posix() in known
            for parent, _, names in os.walk(self._folder)
            for name in names
        )

    def send(self, fits: Callable[[Sequence[FileState]], None] = lambda _: None) -> tuple[CommittedFile, ...]:
        """Sends what S3 lacks of a snapshot of the folder; returns all of this rank's files. `fits` sees the snapshot before anything is
        sent, and raises where it is not what shall be committed.

        Raises Changed where files kept changing, and what boto3 raises.
        """
        for attempt in range(1, TRIES + 1):
            try:
                with snapshot.staged(
                    self._folder, self._staging, self._say_once, now=self._now, sleep=self._sleep
                ) as seen:
                    mine = self._own(seen.values())
                    fits(mine)
                    self._digests = {one: sha for one, sha in self._digests.items() if seen.get(one.path) == one}
                    return tuple(self._send(mine))
            except Changed as problem:
                if attempt == TRIES:
                    raise
                self._note(f"{self._kind.value}: {problem} during the commit; once more")
                self._sleep(PAUSE_S)
        raise AssertionError("unreachable")

    def forget(self, keys: Iterable[str]) -> None:
        """Takes note that these objects are deleted."""
        for key in keys:
            self._sent.pop(key, None)

    def _own(self, seen: Iterable[FileState]) -> list[FileState]:
        return [one for one in seen if self._foreign.get(one.path) != one]

    def _send(self, files: list[FileState]) -> list[CommittedFile]:
        small = [one for one in files if one.size <= SMALL]
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            sent = dict(zip(small, pool.map(self._send_small, small), strict=True))
        for one in files:
            if one not in sent:
                sent[one] = self._send_large(one)
        return [sent[one] for one in files]

    def _send_small(self, seen: FileState) -> CommittedFile:
        if known := self._known(seen):
            return known
        content = (self._staging / seen.path).read_bytes()
        snapshot.check(self._staging / seen.path, seen)
        digest = hashlib.sha256(content)
        file = self._listed(seen, digest.hexdigest())
        if self._sent.get(file.key) != file.sha256:
            self._store.send_bytes(file.key, content, digest.digest())
        return self._remember(seen, file)

    def _send_large(self, seen: FileState) -> CommittedFile:
        if known := self._known(seen):
            return known
        staged = self._staging / seen.path
        file = self._listed(seen, self._digests.get(seen) or digest_of(staged))
        snapshot.check(staged, seen)
        if self._sent.get(file.key) != file.sha256:
            self._store.send_file(file.key, staged)
            snapshot.check(staged, seen)  # bytes that changed on their way are listed by no commit
        return self._remember(seen, file)

    def _known(self, seen: FileState) -> CommittedFile | None:
        if (digest := self._digests.get(seen)) is None:
            return None
        file = self._listed(seen, digest)
        return file if self._sent.get(file.key) == digest else None

    def _listed(self, seen: FileState, sha256: str) -> CommittedFile:
        if self._kind is CommitKind.CHECKPOINTS:
            key = self._prefix.checkpoint(self._rank, sha256, seen.path)
        else:
            key = self._prefix.artifact(self._rank, seen.path)
        return CommittedFile(path=seen.path, size=seen.size, sha256=sha256, key=key, mode=seen.mode)

    def _remember(self, seen: FileState, file: CommittedFile) -> CommittedFile:
        self._sent[file.key] = file.sha256
        self._digests[seen] = file.sha256
        return file

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._note(f"{self._kind.value}: {text}")


class Artifacts:
    """Commits ARTIFACTS_DIR: each commit lists all files, and replaces none before it."""

    def __init__(
        self, store: Store, folder: Folder, *, job: str, attempt: int, rank: int, progress: ProgressFile,
        now: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._store, self._folder, self._prefix = store, folder, BytesPrefix(job)
        self._job, self._attempt, self._rank = job, attempt, rank
        self._progress, self._now = progress, now
        self.newest: Commit | None = None
        self.newest_key = ""

    def commit(self, *, final: bool = False) -> Commit | None:
        """Makes a commit, unless nothing changed since the last one or the folder is empty. Raises as Folder.send does."""
        files = self._folder.send()
        if not files or (self.newest is not None and files == self.newest.files):
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
        self.newest, self.newest_key = commit, key
        return commit


def digest_of(file: Path) -> str:
    """SHA-256, in hexadecimal."""
    digest = hashlib.sha256()
    with file.open("rb") as source:
        while chunk := source.read(MIB):
            digest.update(chunk)
    return digest.hexdigest()
