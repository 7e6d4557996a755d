"""A commit: the object, written last, that makes uploaded files a checkpoint (or a set of artifacts)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedFile:
    """One file of a commit."""

    path: str
    """Path relative to the folder, with `/` between its parts."""
    size: int
    sha256: str
    key: str
    """Key of the object, in the same bucket as the commit. An object may hold several files."""
    mode: int = 0o644
    offset: int = 0
    """Where in the object the file begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Readers see all files of a commit or do not see the commit."""

    job: str
    attempt: int
    rank: int
    step: int
    """-1 where the trainer reports no step."""
    created_at: float
    final: bool
    """Whether the commit was written after the training process had ended."""
    files: tuple[CommittedFile, ...]
