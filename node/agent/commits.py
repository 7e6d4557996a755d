"""Sends a folder's files to S3, each once, and commits artifacts: last comes the object that lists them.

Files should appear by renaming; names that end in `.tmp` are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from agent import snapshot
from agent.engine.engine import Engine
from agent.engine.places import Memory, wasteful
from agent.growth import Growth
from agent.progress import ProgressFile
from agent.snapshot import RACY_S, UNFINISHED, Changed, FileState, FolderState, Observed
from agent.store import Store
from agent.symlinks import Links, stays_inside
from contract.codec import compact
from contract.commits import Commit, CommittedFile, CommittedFolder, CommittedLink, Contents
from contract.keys import BytesPrefix, CommitKind

TRIES, PAUSE_S = 5, 0.5
CORES = 1.0
"""How many processors a commit takes while the training needs them."""
LOG_S = 30.0
"""For so long an artifact has only grown that is committed while it does: a save into its place is over by then."""
SHOWN = 3
"""The most things that are left out which a report names."""
Select = Callable[[Sequence[FileState]], Sequence[FileState]]
"""Chooses which of a rank's own files and links are committed, and marks those that only grow (`agent.growth`)."""


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
        shown: Mapping[str, str] | None = None,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`shown` has the job's folders on this machine by the paths under which the training knows them."""
        self._engine, self._folder, self._kind = engine, folder, kind
        self._rank, self._note, self._now, self._sleep = rank, note, now, sleep
        self._prefix = BytesPrefix(job)
        self._memory = Memory()
        # Artifacts are read where no link can be: in S3, and on a person's machine.
        keeps = kind is CommitKind.CHECKPOINTS
        self._links = Links(str(folder), {str(folder): str(folder), **(shown or {})}, keeps)
        self._foreign: dict[str, tuple[int, int, int]] = {}
        self._foreign_folders: set[str] = set()
        self._seen_folders: Mapping[str, FolderState] = {}
        self.too_long: Sequence[str] = ()
        """Paths that were too long to be committed at the last look: what is committed without them is not all of it."""
        self._said: set[str] = set()
        self.restored: tuple[CommittedFile, ...] = ()
        """What this bucket has of this rank from before the attempt."""

    @property
    def path(self) -> Path:
        return self._folder

    @property
    def left_out(self) -> str:
        """What could not be committed of the folder, and why, in one line; empty where everything was."""
        first, rest = sorted(self._said)[:SHOWN], len(self._said) - SHOWN
        more = f", and {rest} more" if rest > 0 else ""
        return f"{self._kind.value}: {'; '.join(first)}{more}" if first else ""

    def adopt(self, restored: Mapping[int, Contents], *, here: bool) -> None:
        """Takes note of what was restored, by the rank that committed it. Files of this rank are not sent again where they are in this
        bucket already (`here`); what is of another rank is not committed by this one as long as it does not change."""
        there = self._observe().files
        for rank, contents in restored.items():
            if rank != self._rank:
                others = (there[one.path] for one in (*contents.files, *contents.links) if one.path in there)
                self._foreign |= {seen.path: seen.content for seen in others}
                self._foreign_folders |= {folder.path for folder in contents.folders}
            else:
                self.restored = contents.files if here else ()
                for file in (file for file in contents.files if file.path in there):
                    self._memory.adopt(there[file.path], file, here=here)

    def list_own(self) -> list[FileState]:
        """Lists this rank's own files and links, without a call of S3. Raises Changed where the folder moves under it."""
        return self._own(self._observe().files.values())

    @property
    def folders(self) -> Mapping[str, FolderState]:
        """The folders in it, as of the last look."""
        return self._seen_folders

    @property
    def is_saving(self) -> bool:
        """Whether an unfinished file lies in the folder, or in the one beside it in which the module for trainers writes."""
        return any(True for _ in self.list_unfinished())

    def list_unfinished(self) -> Iterator[FileState]:
        """Yields these files."""
        beside = self._folder.with_name(f"{self._folder.name}{UNFINISHED}")
        yield from (FileState.of(path, facts) for path, facts in snapshot.list_below(beside))
        for path, facts in snapshot.list_below(self._folder):
            if any(part.endswith(UNFINISHED) for part in path.split("/")):
                yield FileState.of(path, facts)

    def send(
        self, select: Select = lambda own: own, *, empty_folders: bool = True, cores: float | None = CORES
    ) -> Contents:
        """Sends what S3 lacks of the folder as it is at one moment; returns what is committed of it. `select` sees this rank's own files
        and links before anything is sent, and once more when all that it chose is open; it raises where they are not what shall be
        committed. `empty_folders`: whether folders come back that have nothing of it. `cores`: the processors that it may use; None for
        all.

        Raises Changed where files kept changing, and what boto3 raises.
        """
        for attempt in range(1, TRIES + 1):
            try:
                return self._send(select, empty_folders, cores)
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

    def _send(self, select: Select, empty_folders: bool, cores: float | None) -> Contents:
        before = self._observe()
        chosen = list(select(self._own(before.files.values())))
        self._memory.keep([*before.files.values(), *chosen])
        packed = self._kind is CommitKind.CHECKPOINTS
        files = [one for one in chosen if not one.target]
        sent = self._engine.send(
            self._folder,
            files,
            self._memory,
            pack_key=(lambda digest: self._prefix.pack(self._rank, digest)) if packed else None,
            file_key=self._key,
            cores=cores,
            when_open=lambda: self._check_unchanged(chosen, select),
        )
        return Contents(
            files=tuple(sent[one.path] for one in files),
            links=tuple(self._fit_links(chosen)),
            folders=tuple(self._folders(before, chosen, empty_folders)) if packed else (),
        )

    def _fit_links(self, mine: Iterable[FileState]) -> Iterator[CommittedLink]:
        """The links as a restore takes them: there no link is that is left out here, and one through it would lead elsewhere."""
        targets = {one.path: one.target for one in mine if one.target}
        while unfit := [path for path in targets if not stays_inside(path, targets)]:
            for path in unfit:
                self._say_once(f"{path!r} is left out: it is a link through one that is left out")
                del targets[path]
        return (CommittedLink(path=path, target=target) for path, target in targets.items())

    def _folders(self, seen: Observed, chosen: Iterable[FileState], empty: bool) -> Iterator[CommittedFolder]:
        """The folders in which this rank has something, and, where `empty` ones count, those in which nothing is of another rank."""
        own = {str(parent) for one in chosen for parent in PurePosixPath(one.path).parents}
        foreign = {str(parent) for path in seen.files for parent in PurePosixPath(path).parents} | self._foreign_folders
        for path, state in sorted(seen.folders.items()):
            if path in own or (empty and path not in foreign):
                yield CommittedFolder(path=path, mode=state.mode, mtime_us=snapshot.kept_us(state.mtime_ns))

    def _observe(self) -> Observed:
        seen = snapshot.observe(self._folder, self._say_once, self._links)
        self._seen_folders, self.too_long = seen.folders, seen.too_long
        return seen

    def _key(self, name: str, path: str) -> str:
        if self._kind is CommitKind.CHECKPOINTS:
            return self._prefix.checkpoint(self._rank, name, path)
        return self._prefix.artifact(self._rank, path)

    def _check_unchanged(self, chosen: Sequence[FileState], select: Select) -> None:
        """Raises Changed unless the choice is as it was: then all that was seen, and is open now, was there at one moment."""
        before = {one.path: one for one in chosen}
        youngest = max((seen.ctime_ns for seen in chosen), default=0) / 1e9
        if abs(self._now() - youngest) < RACY_S:
            self._sleep(RACY_S)
        after = {one.path: one for one in select(self.list_own())}
        came_or_went = before.keys() ^ after.keys()
        changed = (path for path, seen in before.items() if path in after and not seen.is_same_as(after[path]))
        if names := sorted((*came_or_went, *changed)):
            raise Changed(f"{names[0]} changed")

    def _own(self, seen: Iterable[FileState]) -> list[FileState]:
        return [one for one in seen if self._foreign.get(one.path) != one.content]

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
        self._growth = Growth(folder.path, clock=now)
        self._seen: Sequence[FileState] = ()
        self.newest: Commit | None = None
        self.newest_key = ""

    def commit(self, *, final: bool = False) -> Commit | None:
        """Makes a commit, unless nothing changed since the last one or the folder is empty. Raises as Folder.send does."""
        seen = self._folder.list_own()
        if seen == self._seen:
            return None
        files = self._folder.send(
            lambda own: self._growth.mark(own, since=self._now() - LOG_S), cores=None if final else CORES
        ).files
        if not files or (self.newest is not None and _bytes_of(files) == _bytes_of(self.newest.files)):
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
        self._store.put(key, compact(commit))
        self._seen, self.newest, self.newest_key = seen, commit, key
        return commit


def _bytes_of(files: Iterable[CommittedFile]) -> list[tuple[str, str, int]]:
    return [(file.path, file.digest, file.mode) for file in files]
