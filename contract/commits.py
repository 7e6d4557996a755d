"""A commit: the object, written last, that makes uploaded files a checkpoint (or a set of artifacts)."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum

from contract.keys import CLOSED

MOST_DOCUMENT = 32 * 1024**2
"""Bytes of the longest document that is written or read: a commit of about 100,000 files. Code of a job can write documents, so nothing
else bounds them."""
MOST_SET = 1024**2
"""Bytes of what closes a set: it names a key of 70 bytes for each rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedFile:
    """One file of a commit."""

    path: str
    """Path relative to the folder, with `/` between its parts."""
    size: int
    key: str
    """Key of the object, in the same bucket as the commit. An object may hold several files."""
    mode: int = 0o644
    offset: int = 0
    """Where in the object the file begins."""
    mtime_us: int = 0
    """When its bytes were last written, UTC epoch microseconds by the machine's clock; 0 where that is not known."""
    sha256: str = ""
    """Empty where `crc32` is there."""
    crc32: str = ""
    """Of a file that was sent in parts, in place of its SHA-256: the bytes of each part but the last, `-`, and in hex the SHA-256 of the
    file's size (8 bytes, the highest first) and of each part's CRC32 (4 bytes)."""

    @property
    def digest(self) -> str:
        """Equal where the bytes are."""
        return self.sha256 or self.crc32


def digest_parts(size: int, part: int, crcs: Iterable[int]) -> str:
    """Returns the digest of a large file (`CommittedFile.crc32`): of its size in bytes, the size of its parts but for the last, and the
    CRC32 of each part."""
    digest = hashlib.sha256(size.to_bytes(8, "big"))
    for crc in crcs:
        digest.update(crc.to_bytes(4, "big"))
    return f"{part}-{digest.hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedLink:
    """A symbolic link that leads to a place in the same folder."""

    path: str
    target: str
    """Relative to the folder in which the link lies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedFolder:
    """A folder in the folder: with it an empty one comes back, and each with its time."""

    path: str
    mode: int = 0o755
    mtime_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a rank has in a folder."""

    files: tuple[CommittedFile, ...] = ()
    links: tuple[CommittedLink, ...] = ()
    folders: tuple[CommittedFolder, ...] = ()


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
    number: int = 0
    """Of checkpoints: the number of the set that this is a part of; 0 for artifacts, and for commits made before there were sets."""
    named: bool = False
    """Whether the rank's own trainer named this checkpoint."""
    moment: float = 0.0
    """When it was named; where it was not, when the newest of its files changed. By the machine's own clock; 0 where that is wrong."""
    links: tuple[CommittedLink, ...] = ()
    folders: tuple[CommittedFolder, ...] = ()
    ended_well: bool = False
    """Whether the training's command had ended with 0: the folder has all that it wanted to leave there."""
    goes_beyond: bool = False
    """Whether files of it came after the checkpoint was named."""
    place: str = ""
    """The layout of the checkpoint and its file or folder, where a layout shows which one it is: `transformers checkpoint-40`."""
    beside: bool = False
    """Whether nothing names it, and its files are no part of a checkpoint by what is in them: logs, small texts and tables."""

    @property
    def contents(self) -> Contents:
        return Contents(files=self.files, links=self.links, folders=self.folders)


def name_checkpoint(step: int, name: str = "") -> str:
    """Returns what sentences call a checkpoint: by its step, or, where that is unknown (-1), by its file or folder."""
    return f"checkpoint {step}" if step >= 0 else f"checkpoint {name}" if name else "the checkpoint"


class Part(str, Enum):
    """What a rank has of a set, by the ending of its part's key."""

    FILES = "json"
    NOTHING = "none"
    """The rank has no files of its own."""
    MISSED = "missed"
    """The rank cannot commit what the plan names: the set is never closed."""


def is_closed(names: Collection[str]) -> bool:
    """Whether the documents of a set, by the last part of their keys, close it. Where a rank missed the set, or took back what it had
    answered, nothing does."""
    return CLOSED in names and not any(name.endswith(f".{Part.MISSED.value}") for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """Why a rank missed a set."""

    rank: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyPart:
    """What a rank says that has no files of its own in a set."""

    ended_well: bool = False
    """As in `Commit`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPlan:
    """Which checkpoint the ranks commit in a set: written once, by the rank that opens the set."""

    number: int
    step: int
    """The checkpoint that the trainer named; where it names none, its step, or -1."""
    names: int
    """How many checkpoints the trainer of that rank had named in this attempt; 0 where it names none."""
    named_at: float
    """When it named this one, by the clock of that rank's machine; 0 where that clock is wrong."""
    opened_at: float
    """By AWS's clock, UTC epoch seconds."""
    rank: int
    layout: str = ""
    """The layout in which that rank recognised the checkpoint; empty where the trainer named it, or nothing does."""
    name: str = ""
    """Of a checkpoint in a layout: its file or folder in CHECKPOINT_DIR; empty for the whole of it."""
    needs: tuple[str, ...] = ()
    """Paths that its marker lists: each has to be on some rank."""

    @property
    def place(self) -> str:
        """As `Commit.place`."""
        return f"{self.layout} {self.name}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSet:
    """Closes a set: from now on its parts together are a checkpoint, which a later attempt may restore."""

    job: str
    attempt: int
    number: int
    step: int
    closed_at: float
    """By AWS's clock, UTC epoch seconds."""
    parts: tuple[str, ...]
    """By rank, the key of its part; empty for a rank that has nothing to commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptEnvironment:
    """What a job's requirements installed on a node, for the job's later attempts."""

    took_s: float
    """How long the installation took."""
    files: tuple[CommittedFile, ...]
    """By their path in the work folder."""
    built_on: str = ""
    """The processor and the GPUs of the node, where some of it was built beside the code; empty otherwise."""
