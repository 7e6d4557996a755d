"""Commits a folder to S3: uploads each file once, and last writes the object that lists them.

Files in CHECKPOINT_DIR should appear by renaming; names that end in `.tmp` are left out. A trainer that replaces several
files one by one says in PROGRESS_FILE which checkpoint is complete (`checkpoint`); a commit during which that changes is
repeated. A commit without a step has step -1 and is stored under step 0, where the next one replaces it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agent import snapshot
from agent.progress import ProgressFile
from agent.retention import stale_commits
from agent.snapshot import Changed, FileState
from agent.store import MIB, Store
from contract.codec import decode, encode
from contract.commits import Commit, CommittedFile
from contract.keys import BytesPrefix, CommitKind

TRIES, PAUSE_S = 5, 0.5
SMALL = 16 * MIB
"""Files up to this size are read once, hashed and sent from memory."""
AT_A_TIME = 8
"""Small files sent side by side; large ones are sent one after the other, each in parallel parts."""


class Committer:
    """One folder of one rank in one attempt. Not for use by two threads at once."""

    def __init__(
        self,
        store: Store,
        folder: Path,
        staging: Path,
        *,
        kind: CommitKind,
        job: str,
        attempt: int,
        rank: int,
        progress: ProgressFile,
        note: Callable[[str], None],
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store, self._folder, self._staging, self._kind = store, folder, staging, kind
        self._job, self._attempt, self._rank = job, attempt, rank
        self._progress, self._note, self._now, self._sleep = progress, note, now, sleep
        self._prefix = BytesPrefix(job)
        self._sent: dict[str, str] = {}
        self._digests: dict[FileState, str] = {}
        self._foreign: dict[str, FileState] = {}
        self._said: set[str] = set()
        self._last_files: tuple[CommittedFile, ...] = ()
        self.newest: Commit | None = None
        self.newest_key = ""

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

    def commit(self, *, final: bool = False, step: int | None = None) -> Commit | None:
        """Makes a commit, unless nothing changed since the last one or the folder is empty. `step` overrides the trainer's.

        Raises Changed where files kept changing, and what boto3 raises; earlier commits stay as they are.
        """
        for attempt in range(1, TRIES + 1):
            try:
                return self._once(final, step)
            except Changed as problem:
                if attempt == TRIES:
                    raise
                self._note(f"{self._kind.value}: {problem} during the commit; once more")
                self._sleep(PAUSE_S)
        return None

    def thin(self) -> None:
        """Deletes this rank's commits that are older than the newest three sets, then the files that none of its remaining
        commits lists."""
        keys = list(self._store.keys(self._prefix.commits(self._kind)))
        stale = stale_commits(keys, self._rank)
        if not stale:
            return
        self._store.delete(stale)
        kept = [key for key in keys if key not in set(stale) and key.endswith(f"/r{self._rank:04d}.json")]
        listed = {file.key for key in kept for file in decode(Commit, self._store.get(key)).files}
        unlisted = [key for key in self._store.keys(self._prefix.checkpoints(self._rank)) if key not in listed]
        self._store.delete(unlisted)
        for key in unlisted:
            self._sent.pop(key, None)
        self._note(f"thinned: {len(stale)} commits and {len(unlisted)} files of older checkpoints")

    def _once(self, final: bool, step: int | None) -> Commit | None:
        at = self._progress.checkpoint_step() if step is None else step
        with snapshot.staged(self._folder, self._staging, self._say_once, now=self._now, sleep=self._sleep) as seen:
            mine = [one for path, one in seen.items() if self._foreign.get(path) != one]
            if not mine:
                return None
            if self._progress.names_checkpoints and step is None and self._progress.checkpoint_step() != at:
                raise Changed("the trainer finished another checkpoint")
            self._digests = {one: digest for one, digest in self._digests.items() if seen.get(one.path) == one}
            files = tuple(self._send(mine))
        moved = self._progress.names_checkpoints and self.newest is not None and self.newest.step != at
        if files == self._last_files and not moved:
            return None
        commit = Commit(
            job=self._job,
            attempt=self._attempt,
            rank=self._rank,
            step=at,
            created_at=self._now(),
            final=final,
            files=files,
        )
        key = self._prefix.commit(self._kind, self._attempt, max(commit.step, 0), self._rank)
        self._store.put(key, encode(commit))
        self.newest, self.newest_key, self._last_files = commit, key, files
        return commit

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


def digest_of(file: Path) -> str:
    """SHA-256, in hexadecimal."""
    digest = hashlib.sha256()
    with file.open("rb") as source:
        while chunk := source.read(MIB):
            digest.update(chunk)
    return digest.hexdigest()
