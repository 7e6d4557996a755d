"""The folder of checkpoints of one rank, and what commits it to the fake S3."""

from __future__ import annotations

import json
import os
from pathlib import Path

from agent.commits import Committer
from agent.progress import ProgressFile
from agent.restore import restore
from agent.store import Store
from contract.commits import Commit
from contract.keys import CommitKind
from tests.node.fakes import FakeS3

BUCKET = "yard-bytes"


class Folder:
    """CHECKPOINT_DIR of one rank in one attempt, with what commits it."""

    def __init__(
        self, root: Path, s3: FakeS3, rank: int = 0, attempt: int = 1, kind: CommitKind = CommitKind.CHECKPOINTS
    ) -> None:
        self.path = root / f"a{attempt}r{rank}" / kind.value
        self.path.mkdir(parents=True)
        self.progress = self.path.parent / "progress.json"
        self.s3, self.rank, self.attempt = s3, rank, attempt
        self.notes: list[str] = []
        self.staging = self.path.parent / "staging"
        self.committer = Committer(
            Store(s3, BUCKET), self.path, self.staging,
            kind=kind, job="job-1", attempt=attempt, rank=rank,
            progress=ProgressFile(self.progress), note=self.notes.append, sleep=lambda _: None,
        )  # fmt: skip

    def write(self, path: str, text: str) -> Path:
        """Replaces the file atomically, as trainers should."""
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        (self.path / ".new.tmp").write_text(text)
        (self.path / ".new.tmp").rename(file)
        os.utime(file, (file.stat().st_mtime - 1,) * 2)  # old enough to be trusted at once
        return file

    def at(self, step: int, **more: object) -> Folder:
        self.progress.write_text(json.dumps({"step": step, **more}))
        return self

    def commit(self, step: int, **files: str) -> Commit | None:
        for name, text in files.items():
            self.write(name, text)
        return self.at(step).committer.commit()

    def restore(self) -> int | None:
        """What the agent does at the start of an attempt."""
        store = Store(self.s3, BUCKET)
        found = restore([store], "job-1", self.attempt, self.rank, self.path, self.staging, self.notes.append)
        if found is None:
            return None
        for rank, files in found.files.items():
            self.committer.adopt(files, rank=rank, here=True)
        self.committer.commit(step=found.step)
        return found.step

    @property
    def content(self) -> dict[str, str]:
        return {str(f.relative_to(self.path)): f.read_text() for f in self.path.rglob("*") if f.is_file()}


def bytes_of(s3: FakeS3, commit: Commit) -> dict[str, str]:
    return {file.path: s3.objects[BUCKET, file.key].decode() for file in commit.files}
