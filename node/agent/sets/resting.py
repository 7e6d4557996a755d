"""Tells files that a trainer is done with from files that it may be writing, where neither a name nor a layout says so.

Most trainers write a file in place: it has the bytes of the checkpoint before, then some of the next one, then all of them. Three things
say that it is whole: its format, whose end only the last write makes; a name that it got by renaming; and rest. Files that are written
together belong together: while only some of them are new, none is taken. A small text that its trainer writes again and again, each time in
one go, is no part of a checkpoint, and a database or a picture neither: these hold up nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence

from agent.layouts.kinds import FileKind
from agent.sets.busy import Busy
from agent.sets.evidence import FileEvidence
from agent.sets.pieces import KnownPieces, Pieces
from agent.sets.rows import find_open_saves, mask
from agent.snapshot import FileState

RESTS_S = 10.0
"""A trainer that has not changed its files for so long has finished them, where nothing else says that they may be half of something."""
LONG_REST_S = 60.0
"""The same for files that nothing but rest shows to be whole: a save over a slow mount, or out of a GPU's memory, pauses for seconds."""
BETWEEN_S = 2.0
"""The same for files that are whole by their format, of a trainer that does not pause for longer between its saves: another file of the
same save follows sooner."""
SHORTEST_S, BYTES_PER_S = 1.0, 200e6
"""A file takes at least so long to write, and a larger one as long as at this speed: one that changed within that time of the trainer's
death was being written."""
GIVEN_UP_S = 120.0
"""A document that is empty for so long is as its trainer wants it."""
MOST_POINTER = 4096
"""Bytes of a text that names the newest checkpoint, at most: as many as a path has."""
REWRITES, CERTAIN_REWRITES = 3, 10
"""A small text that was written anew so often, and never seen in pieces, is no part of a checkpoint once it rests for SHORTEST_S; after the
second number it need not rest."""


def rest_s(every_s: float) -> float:
    """Returns how long a file has rested that may be taken, where a set is due every `every_s` seconds."""
    return min(RESTS_S, every_s / 4)


def long_rest_s(every_s: float) -> float:
    """Returns the same for files that nothing but rest shows to be whole."""
    return min(LONG_REST_S, every_s / 4)


class Resting:
    """What one folder's files were in the last set, and which of them are saved together. Not for use by two threads at once."""

    def __init__(self, evidence: FileEvidence, *, is_alone: bool = True) -> None:
        """`is_alone`: whether no other rank may have the checkpoint."""
        self._format, self._is_alone = evidence, is_alone
        self._pieces = KnownPieces()
        self._busy = Busy(evidence.find_kind, evidence.is_whole)
        self.busy = frozenset[str]()
        """Paths of files that are written all the time, beside the saves of others: no part of these checkpoints."""
        self._taken: dict[str, FileState] = {}
        self._together: frozenset[str] = frozenset()
        self._seen: dict[str, FileState] = {}
        self._heads: dict[str, bytes] = {}
        self._rewrites: dict[str, int] = {}
        """How often a small text was written anew in one go."""
        self._born: dict[str, float] = {}
        """When a file was seen first, by the machine's clock."""
        self._versions: dict[str, int] = {}
        """How many whole versions of a file were seen since the last set, of those that were saved together."""

    def take(self, own: Sequence[FileState]) -> None:
        """Takes note of what a set has, or a restore brought."""
        changed = frozenset(one.path for one in self.list_changed(own))
        if self._taken and changed:
            self._together = changed
        self._taken = {one.path: one._replace(grows=False) for one in own}
        self._versions.clear()

    def observe(self, own: Sequence[FileState], now: float, every_s: float) -> None:
        """Compares the files with those of the call before; a set is due every `every_s` seconds."""
        self._busy.observe(own, now)
        self.busy = self._busy.find(now, every_s)
        self._born = {one.path: self._born.get(one.path, now) for one in own}
        new = [one for one in own if self._pieces.is_watched(one.path) or not self.has_taken(one)]
        self._pieces.observe([(one, self._format.count_pieces(one)) for one in new], now)
        for one in own:
            before = self._seen.get(one.path)
            if one.target or one.grows or (before is not None and before.content == one.content):
                continue
            if before is not None and one.path in self._together and self.has_evidence(one):
                self._versions[one.path] = self._versions.get(one.path, 0) + 1
            if self._format.find_kind(one).is_small_text:
                self._count_rewrite(one, before)
        self._seen = {one.path: one for one in own}
        self._rewrites = {path: times for path, times in self._rewrites.items() if path in self._seen}
        self._heads = {path: head for path, head in self._heads.items() if path in self._seen}

    def _count_rewrite(self, one: FileState, before: FileState | None) -> None:
        """Takes note of how a small text came to be: anew, or as a further piece of what it was."""
        head, known = self._format.read_head(one), self._heads.get(one.path)
        self._heads[one.path] = _digest(head + self._format.read_end(one, one.size))
        if before is not None:
            in_pieces = before.size < one.size and known == _digest(
                head[: before.size] + self._format.read_end(one, before.size)
            )
            self._rewrites[one.path] = 0 if in_pieces else self._rewrites.get(one.path, 0) + 1

    def is_torn(self, one: FileState) -> bool:
        """Whether a file is cut off by its format."""
        return self.has_evidence(one) is False

    def has_taken(self, one: FileState) -> bool:
        """Whether the last set has the file as it is."""
        return self._taken.get(one.path) == one._replace(grows=False)

    def find_unfinished(
        self, own: Sequence[FileState], changes: Mapping[str, float], now: float, *, every_s: float, late: bool, is_over: bool
    ) -> frozenset[str]:  # fmt: skip
        """Returns the paths of saves that are not whole, where an earlier or a later one of the same kind is: that one is a checkpoint
        without them. What is written all the time and may be weights is among them. `is_over`: the trainer died `now`."""
        enough_s = rest_s(every_s) if late or not self._taken else long_rest_s(every_s)

        def is_open(one: FileState) -> bool:
            evidence, age_s = self.has_evidence(one), now - changes.get(one.path, 0.0)
            if evidence is None and self._format.find_kind(one) in (FileKind.WEIGHTS, FileKind.WORDS):
                return is_being_written(one, age_s) if is_over else age_s <= enough_s
            return evidence is False

        busy = {one.path for one in own if one.path in self.busy and not one.grows and self._may_be_weights(one)}
        return find_open_saves(
            [one for one in own if not one.grows and not self._is_as_it_is(one)], self._taken, is_open=is_open, born=self._born,
            changes=changes, apart_s=0.0 if late else long_rest_s(every_s),
        ) | busy  # fmt: skip

    def find_doubt(
        self, own: Sequence[FileState], changes: Mapping[str, float], now: float, *, every_s: float, due_s: float, late: bool,
        is_saving: Callable[[], bool] = lambda: False,
    ) -> str:  # fmt: skip
        """Why the files that are new since the last set may not be whole yet; empty where they are. Times are the machine's. A set has been
        due for `due_s`. `late`: a trainer that saves all the time has no rest to wait for, so files that are certainly whole need none,
        and others a short one; so do those of the first set, which take the place of none. `is_saving`: whether a file was written just
        now that will be renamed: of a save of several files it may be the next."""
        changed = self.list_changed(own)
        notes, pointers = self._find_notes(changed, own), self._find_pointers(changed, own)
        saved = [one for one in changed if one.path not in notes | pointers]
        rested_s = now - max((changes.get(one.path, 0.0) for one in saved or changed), default=0.0)
        short_s = rest_s(every_s)
        enough_s = short_s if late or not self._taken else long_rest_s(every_s)
        for one in changed:
            evidence, age_s = self.has_evidence(one), now - changes.get(one.path, 0.0)
            if one.path in self.busy:
                continue
            if evidence is False and not (self._is_empty(one) and age_s > GIVEN_UP_S):
                return f"{one.path} is cut off: its format says that more is to come"
            if one.path in pointers:
                continue
            if one.path in notes:
                if not self._may_take_note(one, age_s):
                    return f"{one.path} may still be written"
            elif not evidence and age_s <= enough_s:
                return f"{one.path} may still be written: it changed {age_s:.0f} s ago"
        if (missing := self._missing(self._list_saved(changed, notes), own)) and rested_s <= enough_s:
            return f"{missing} is of the save before, and other files are of the next one"
        if rested_s > short_s or any(changes.get(path, 0.0) >= now - rested_s for path in pointers):
            return ""
        if not late and rested_s <= (min(BETWEEN_S, short_s) if due_s > every_s / 4 else short_s):
            return f"{(saved or changed)[0].path} changed {rested_s:.0f} s ago"
        is_row = len(self._together) > 1 and due_s <= 2 * every_s
        return "another file of that save is still written, beside its place" if is_row and is_saving() else ""

    def find_unrest(
        self, own: Sequence[FileState], changes: Mapping[str, float], now: float, *, every_s: float, waited_s: float
    ) -> str:
        """The same for files that a person saves one by one: none belongs to another, and one that is cut off is as they have it. After a
        short wait those that rest are taken without the others."""
        changed, short_s = self.list_changed(own), rest_s(every_s)
        restless = self.list_restless(own, changes, since=now - short_s, now=now)
        if not restless or (waited_s > short_s and len(restless) < len(changed)):
            return ""
        return f"{restless[0]} changed {now - changes[restless[0]]:.0f} s ago"

    def list_restless(
        self, own: Sequence[FileState], changes: Mapping[str, float], *, since: float, now: float
    ) -> list[str]:
        """Paths of the new files that changed after `since`. One whose time is still to come says nothing: the clock was set back."""
        new = (one.path for one in self.list_changed(own) if not one.target)
        return [path for path in new if since <= changes.get(path, 0.0) <= now]

    def find_doubt_at_end(
        self, own: Sequence[FileState], changes: Mapping[str, float], ended_at: float
    ) -> tuple[str, bool]:
        """The same once the trainer has died at `ended_at`, and whether a file is certainly torn."""
        changed, doubt = self.list_changed(own), ""
        notes, pointers = self._find_notes(changed, own), self._find_pointers(changed, own)
        for one in changed:
            evidence, age_s = self.has_evidence(one), ended_at - changes.get(one.path, 0.0)
            if one.path in self.busy:
                continue
            if evidence is False:
                return f"{one.path} is cut off: its trainer ended while it wrote it", True
            if one.path in pointers or (one.path in notes and self._may_take_note(one, age_s)):
                continue
            if not evidence and is_being_written(one, age_s):
                doubt = f"its trainer ended while it may have been writing {one.path}"
            elif age_s <= RESTS_S and (missing := self._missing(self._list_saved(changed, notes), own)):
                doubt = f"its trainer ended when it had written {one.path}, and not yet {missing}"
        return doubt, False

    def list_changed(self, own: Sequence[FileState]) -> list[FileState]:
        """Returns the files that the last set does not have as they are, without those that only grow."""
        return [one for one in own if not one.grows and self._taken.get(one.path) != one]

    def has_evidence(self, one: FileState) -> bool | None:
        """Whether a file is whole by its format, or by the way in which it came to its place; None where that is not known."""
        whole = self._format.is_whole(one)
        return self._was_renamed(one) or self._is_one_piece(one) or None if whole is None else whole

    def _is_one_piece(self, one: FileState) -> bool:
        return self._pieces.is_one(one.path) and self._format.count_pieces(one) is Pieces.ONE

    def _find_notes(self, changed: Sequence[FileState], own: Sequence[FileState]) -> set[str]:
        """Paths of what is no part of a checkpoint and written all the time. Where no rank has more, it is the checkpoint itself."""
        others = [one for one in own if not one.grows and not self._is_as_it_is(one)]
        has_any = not self._is_alone or bool(others)
        has_more = not self._is_alone or not all(map(self._is_note, others))
        return {one.path for one in changed if (has_any if self._is_as_it_is(one) else has_more and self._is_note(one))}

    def _find_pointers(self, changed: Sequence[FileState], own: Sequence[FileState]) -> set[str]:
        """Paths of small texts that hold the name of a file or a folder here, as `last_checkpoint` does: they are whole, and written once
        what they name is."""
        names = {part for one in own for part in one.path.split("/")}
        texts = (one for one in changed if one.size <= MOST_POINTER and self._format.find_kind(one).is_small_text)
        return {one.path for one in texts if self._read_pointer(one) in names - {one.path.rpartition("/")[2]}}

    def _read_pointer(self, one: FileState) -> str:
        text = self._format.read_head(one).decode("utf-8", "replace").strip().rstrip("/")
        return text.rpartition("/")[2]

    def _is_as_it_is(self, one: FileState) -> bool:
        """Whether a file is at every moment as its writer wants it."""
        return bool(one.target) or one.path in self.busy or self._format.find_kind(one) is FileKind.NOTE

    def _may_be_weights(self, one: FileState) -> bool:
        return self._format.find_kind(one) is FileKind.WEIGHTS

    def _is_note(self, one: FileState) -> bool:
        is_small = self._format.find_kind(one).is_small_text
        return is_small and (self._format.is_whole(one) is True or self._is_restless(one))

    def _is_restless(self, one: FileState) -> bool:
        return self._rewrites.get(one.path, 0) >= REWRITES

    def _may_take_note(self, one: FileState, rested_s: float) -> bool:
        if self._is_as_it_is(one) or self._format.is_whole(one) is True:
            return True
        return one.size > 0 and (rested_s > SHORTEST_S or self._rewrites.get(one.path, 0) >= CERTAIN_REWRITES)

    def _list_saved(self, changed: Sequence[FileState], notes: Collection[str]) -> list[FileState]:
        """Files that may be of a save of several files: a link and an index are, what is written all the time is not."""
        return [
            one
            for one in changed
            if one.target or one.path not in notes or not (self._is_as_it_is(one) or self._is_restless(one))
        ]

    def _is_empty(self, one: FileState) -> bool:
        """Whether a small text has nothing yet, as the metrics of a training that has just begun."""
        return not one.size and self._format.find_kind(one).is_small_text

    def _missing(self, changed: Sequence[FileState], own: Sequence[FileState]) -> str:
        """A file that was saved together with one that is new, and is still of the save before; empty where there is none. One that stayed
        while another was saved twice is not saved together with it."""
        new = {one.path for one in changed}
        if not new & self._together or any(self._versions.get(path, 0) > 1 for path in new):
            return ""
        rows = {
            mask(path) for path in new if path not in self._taken
        }  # a file with the next number takes the place of none
        stayed = (one.path for one in own if one.path in self._together - new and not one.grows)
        return min((path for path in stayed if mask(path) not in rows), default="")

    def _was_renamed(self, one: FileState) -> bool:
        """A write dates bytes and inode alike, a rename the inode alone. A new inode alone may be a file that is written anew."""
        before = self._taken.get(one.path)
        return one.ctime_ns > one.mtime_ns and (before is None or before.inode != one.inode)


def is_being_written(one: FileState, age_s: float) -> bool:
    """Whether a file that changed so long before its trainer died may not have been all there, if nothing else says so."""
    return age_s < max(SHORTEST_S, one.size / BYTES_PER_S)


def _digest(some: bytes) -> bytes:
    return hashlib.sha256(some).digest()
