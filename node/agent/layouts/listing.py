"""Describes what layouts are given, a listing of this rank's own files, and what they say of it: facts in, verdicts out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from agent.layouts.pickles import ShardList
from agent.snapshot import FileState, FolderState

RESTS_S = 10.0
"""A checkpoint of a layout that marks no end counts as whole where its files have not changed for so long."""
MOST_STEP = 10**18
"""Steps from here on are no steps of a training, and count as unknown."""
MOST_ROWS = 16
"""Rows of checkpoints that are remembered, those that were seen last: a trainer may name each of its checkpoints otherwise."""
Read = Callable[[str, int, int], bytes]
Key = tuple[str, int, int, int]
"""A file's path and `FileState.content`."""


class Remembered(NamedTuple):
    """A checkpoint that was whole in a listing before."""

    name: str
    written_ns: int
    names: Counter[str]
    """How many files it had of each name, `#` for each number."""


@dataclass(frozen=True)
class Judgements:
    """What was read of files that have not changed since, for the next listing. Not for use by two threads at once."""

    formats: dict[Key, bool | None] = field(default_factory=dict)
    """Whether a file is whole by its format."""
    shards: dict[Key, ShardList | None] = field(default_factory=dict)
    """What a metadata of torch.distributed.checkpoint lists."""
    rows: dict[str, tuple[Remembered, ...]] = field(default_factory=dict)
    """Of each row the two whole checkpoints that were seen last, which their trainer may have removed since."""

    def keep(self, files: Mapping[str, FileState]) -> None:
        """Forgets all that is not of these files."""
        for known in (self.formats, self.shards):
            for key in [key for key in known if key[0] not in files or files[key[0]].content != key[1:]]:
                del known[key]


@dataclass(frozen=True)
class FolderListing:
    """What a rank has of its own in CHECKPOINT_DIR, by path relative to it."""

    files: Mapping[str, FileState]
    """Files and links; names that end in `.tmp` never appear."""
    folders: Mapping[str, FolderState]
    read: Read
    """Returns at most so many bytes of the file at a path from an offset on, fewer at its end; b"" where there is none or it cannot be
    read. Never raises, and never follows a link out of the job's folders."""
    changed_s: Callable[[FileState], float]
    """When a file changed or came to its place, UTC epoch seconds by this machine's clock."""
    now: float
    """The time of the listing by the same clock; infinite once the training process has ended by itself with 0."""
    judgements: Judgements = field(default_factory=Judgements)
    """The same for every listing of a folder."""


@dataclass(frozen=True)
class Whole:
    """A checkpoint that is whole as far as this rank can see."""

    layout: str
    step: int
    """-1 where it is unknown."""
    name: str
    """Its folder or file, relative to CHECKPOINT_DIR; empty for the folder itself."""
    at: float
    """When its marker, or the last of its files, came to its place: UTC epoch seconds by this machine's clock."""
    files: frozenset[str]
    """Its files on this rank, its marker and the links to it among them."""
    needs: frozenset[str] = frozenset()
    """Paths that have to be on some rank of the job: the shards that its marker lists. Empty where a marker lists none."""


@dataclass(frozen=True)
class Recognised:
    """What is recognised in a rank's files."""

    layout: str = ""
    """Also where nothing is whole yet; empty where no layout is recognised."""
    newest: Whole | None = None
    """The checkpoint from which the framework itself would go on, if that is whole."""
    unfinished: frozenset[str] = frozenset()
    """Files of checkpoints of this layout that are not whole here: still written, half removed, or shards without a marker."""
    why: str = ""
    """Why a checkpoint that is newer than `newest` is not whole yet, in words for the node's log."""


@dataclass(frozen=True)
class Shards:
    """What a rank has of a checkpoint whose marker another rank has."""

    files: frozenset[str]
    reason: str = ""
    """Why they are not whole yet; empty where they are, by all that can be known here. A rank without any file of this layout has nothing
    to be whole: no files, and no reason."""
