"""The folder of checkpoints of one rank, and what brings it into sets in the fake S3; a clock that only the test moves."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agent.checkpoints import Checkpoints
from agent.commits import Artifacts, Folder
from agent.engine.engine import Engine
from agent.position import Position
from agent.progress import ProgressFile
from agent.restore import restore
from agent.snapshot import FileState
from agent.store import Store
from contract.codec import encode
from contract.commits import Commit, CommittedFile, Contents
from contract.jobs import Job, Scope, Selection, SourceCheckpoint
from contract.keys import BytesPrefix, CommitKind
from contract.roles import Role
from contract.workbench import Workbench
from tests.builders import JOB
from tests.node.fakes import FakeS3

BUCKET = "yard-bytes"
BEGAN = 1_790_000_000.0
EVERY_S = 600.0


def job(nodes: int = 1, scope: Scope = Scope.AUTO, selection: Selection = Selection.ALL) -> Job:
    return replace(
        JOB, id="job-1", nodes=nodes, admitted_at=BEGAN, checkpoint_minutes=EVERY_S / 60, checkpoint_scope=scope,
        checkpoint_restore=selection,
    )  # fmt: skip


class Clock:
    """AWS's and every machine's."""

    def __init__(self) -> None:
        self.now = BEGAN + 10.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Rank:
    """One rank in one attempt: CHECKPOINT_DIR, PROGRESS_FILE, and what commits them."""

    def __init__(
        self, root: Path, s3: FakeS3, rank: int = 0, attempt: int = 1, *, nodes: int = 1, scope: Scope = Scope.AUTO,
        selection: Selection = Selection.ALL, clock: Clock | None = None, resume: SourceCheckpoint | None = None,
        name: str = "job-1", shown: Mapping[str, str] | None = None, roles: tuple[Role, ...] = (),
        bench: Workbench | None = None, changed_s: Callable[[FileState], float] = lambda seen: seen.mtime_ns / 1e9,
    ) -> None:  # fmt: skip
        """`shown` has further paths by which the trainer knows the folder, each with "" for itself. `changed_s` is when a file changed, by
        the clock: `_date` writes it down, because the kernel's own times are not of this clock."""
        self.path = root / name / f"a{attempt}r{rank}" / "checkpoints"
        self.path.mkdir(parents=True)
        self.progress = self.path.parent / "progress.json"
        self.s3, self.rank, self.attempt, self.clock = s3, rank, attempt, clock or Clock()
        s3.now = self.clock
        self.notes: list[str] = []
        self.staging = self.path.parent / "staging"
        self.store = Store(s3, BUCKET)
        self.folder = Folder(
            Engine(self.store), self.path, kind=CommitKind.CHECKPOINTS, job=name, rank=rank,
            note=self.notes.append, now=self.clock, sleep=self.clock.sleep,
            shown={path: f"{self.path}{more}" for path, more in (shown or {}).items()},
        )  # fmt: skip
        self.machine_s = 0.0
        """How far this machine's clock is ahead."""
        self._changed_s = changed_s
        self.arrange(replace(job(nodes, scope, selection), id=name, resume=resume, roles=roles, workbench=bench))

    def arrange(self, described: Job) -> Rank:
        """Begins with this description of the job."""
        self.place = Position(described, self.attempt, self.rank)
        self.checkpoints = Checkpoints(
            self.place, self.store, self.folder, ProgressFile(self.progress),
            now=self.clock, note=self.notes.append, clock=lambda: self.clock.now + self.machine_s, sleep=self.clock.sleep,
            changed_s=self._changed_s,
        )  # fmt: skip
        return self

    def write(self, path: str, text: str) -> Path:
        """Replaces the file atomically, as trainers should."""
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        (self.path / ".new.tmp").write_text(text)
        (self.path / ".new.tmp").rename(file)
        self._date(file)
        return file

    def at(self, step: int, **more: object) -> Rank:
        """The trainer writes PROGRESS_FILE, as the last thing of its save."""
        self.clock.now += 0.001
        self.progress.write_text(json.dumps({"step": step, **more}))
        self._date(self.progress)
        return self

    def save(self, step: int, **files: str) -> Rank:
        """The trainer saves a checkpoint, and names it."""
        for name, text in files.items():
            self.write(name, text)
        return self.at(step, checkpoint=step)

    def _date(self, file: Path) -> None:
        now = self.clock.now + self.machine_s
        os.utime(file, (now, now))

    def commit(self, step: int, **files: str) -> Commit | None:
        """Saves a checkpoint after the next boundary; the commit that is made of it, None where there is none."""
        self.clock.now += EVERY_S
        before = self.checkpoints.newest_key
        self.save(step, **files)
        self.clock.now += 200.0
        self.checkpoints.tick()
        return self.checkpoints.newest if self.checkpoints.newest_key != before else None

    def restore(self) -> int | None:
        """What the agent does at the start of an attempt."""
        source = self.store if self.place.job.resume else None
        found = restore([self.store], self.place, self.path, self.staging, self.notes.append, source=source)
        if found is None:
            return None
        for file in (file for contents in found.contents.values() for file in contents.files):
            self._date(self.path / file.path)
        self.folder.adopt(found.contents, here=found.here)
        self.checkpoints.restored(found.step, named=found.named)
        return found.step

    @property
    def content(self) -> dict[str, str]:
        return {str(f.relative_to(self.path)): f.read_text() for f in self.path.rglob("*") if f.is_file()}


def ranks(
    root: Path,
    s3: FakeS3,
    nodes: int,
    attempt: int = 1,
    scope: Scope = Scope.AUTO,
    selection: Selection = Selection.ALL,
) -> list[Rank]:
    """All ranks of an attempt, with one clock."""
    clock = Clock()
    return [
        Rank(root, s3, rank, attempt, nodes=nodes, scope=scope, selection=selection, clock=clock)
        for rank in range(nodes)
    ]


def artifacts(rank: Rank) -> Artifacts:
    """What commits ARTIFACTS_DIR of the same rank, which lies beside its checkpoints."""
    folder = Folder(
        Engine(rank.store), rank.path.parent / "artifacts", kind=CommitKind.ARTIFACTS, job="job-1", rank=0,
        note=rank.notes.append, sleep=rank.clock.sleep,
        shown={str(rank.path): str(rank.path)},
    )  # fmt: skip
    folder.path.mkdir()
    return Artifacts(
        rank.store, folder, job="job-1", attempt=1, rank=0, progress=ProgressFile(rank.progress), now=rank.clock
    )


def kept(rank: Rank, made: Artifacts) -> dict[str, str]:
    """Commits, and returns what people find in S3."""
    commit = made.commit(final=True)
    found = commit.files if commit else ()
    return {one.path: rank.s3.objects[BUCKET, one.key].decode() for one in found}


def pass_time(every: Sequence[Rank], seconds: float) -> None:
    """Each second every rank looks at what there is to do."""
    for _ in range(round(seconds)):
        every[0].clock.now += 1.0
        for rank in every:
            rank.checkpoints.tick()


def closed(s3: FakeS3) -> list[str]:
    return [key for _, key in sorted(s3.objects) if key.endswith("/closed.json")]


def before_sets(s3: FakeS3, attempt: int, step: int, rank: int, **files: str) -> Commit:
    """Commits as agents did before sets were closed."""
    from hashlib import sha256

    prefix, listed = BytesPrefix("job-1"), []
    for path, text in files.items():
        digest = sha256(text.encode()).hexdigest()
        key = prefix.checkpoint(rank, digest, path)
        s3.objects[BUCKET, key] = text.encode()
        listed.append(CommittedFile(path=path, size=len(text), sha256=digest, key=key))
    commit = Commit(
        job="job-1", attempt=attempt, rank=rank, step=step, created_at=0.0, final=False, files=tuple(listed)
    )
    s3.objects[BUCKET, prefix.commit(CommitKind.CHECKPOINTS, attempt, step, rank)] = encode(commit)
    return commit


def bytes_of(s3: FakeS3, there: Commit | Contents) -> dict[str, str]:
    return {
        file.path: s3.objects[BUCKET, file.key][file.offset : file.offset + file.size].decode() for file in there.files
    }


def to_boundary(every: Sequence[Rank], namers: Sequence[int] | None = None) -> None:
    """To the next boundary; before it the trainers of these ranks, or of all, have named a checkpoint, as they do all the time."""
    for rank in every:
        if rank.rank in (range(len(every)) if namers is None else namers):
            rank.at(1, checkpoint=1)
    pass_time(every, BEGAN + EVERY_S * ((every[0].clock.now - BEGAN) // EVERY_S + 1) - every[0].clock.now)


def restored(root: Path, s3: FakeS3, nodes: int, attempt: int = 2, scope: Scope = Scope.AUTO) -> list[Rank]:
    every = ranks(root, s3, nodes, attempt, scope)
    for rank in every:
        rank.restore()
    return every
