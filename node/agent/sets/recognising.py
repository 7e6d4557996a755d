"""Tells which checkpoint lies in CHECKPOINT_DIR: by the trainer's own word, by the layout of a framework, or by files that rest."""

from __future__ import annotations

import math
import os
import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agent.commits import Folder
from agent.growth import LEAST_GROWTH_S, Growth
from agent.layouts import FolderListing, Recognised, Shards, Whole, find_shards, recognise
from agent.layouts.kinds import FileKind, has_name_of_weights
from agent.layouts.listing import Judgements
from agent.position import Position
from agent.progress import Named, ProgressFile
from agent.sets.evidence import FileEvidence
from agent.sets.resting import Resting, long_rest_s
from agent.snapshot import PATH_BYTES, FileState
from agent.symlinks import Source
from contract.commits import SetPlan

YOUNG_S = 600.0
"""A file beside checkpoints is looked into for so long: what is cut off after that is as its trainer wants it."""
BESIDE_S = 2.0
"""A file that belongs to no checkpoint of the layout is taken along once it has rested for so long."""


@dataclass(frozen=True)
class Saved:
    """What lies in the folder at one moment, and which checkpoint it is."""

    own: Sequence[FileState]
    """Files and links of this rank, those that only grow marked; without saves that nothing names and that are not whole beside older
    ones that are."""
    changes: Mapping[str, float]
    """When each changed, without those that grow: UTC epoch seconds by the machine's clock."""
    at: float
    """When this was seen, by the machine's clock; infinite where the command had ended well."""
    word: Named | None
    """The checkpoint that the trainer named in PROGRESS_FILE."""
    recognised: Recognised
    found: Named | None
    """The checkpoint that the layout shows."""
    torn: frozenset[str] = frozenset()
    """Files beside the checkpoints of a layout that are cut off by their format."""
    is_beside: Callable[[FileState], bool] = lambda _: False
    """Whether a file is no part of any checkpoint by its name and its content: a log, a small text or table, a picture, a database."""
    are_words: Callable[[FileState], bool] = lambda _: False
    """Whether a file has a few words: no part of a checkpoint where another rank has weights."""
    unfit: str = ""
    """Why something that lies here can be in no set; empty where nothing is so."""

    @property
    def ended_well(self) -> bool:
        """Whether the command had ended by then, by itself and with 0: it has written what it wanted, and all that is there belongs in the
        last set."""
        return math.isinf(self.at)

    @property
    def named(self) -> Named | None:
        return self.word or self.found

    @property
    def whole(self) -> Whole | None:
        """What the layout shows, where the trainer names nothing itself."""
        return self.recognised.newest if self.word is None else None

    @property
    def identity(self) -> str:
        """Tells one checkpoint from another: equal as long as the folder has nothing newer."""
        if self.word is not None:
            return identify(self.word)
        if (whole := self.whole) is not None:
            return f"{whole.layout} {whole.name} of step {whole.step} at {whole.at}"
        return str(hash(tuple(one for one in self.own if not one.grows)))

    @property
    def has_logs_alone(self) -> bool:
        """Whether nothing lies here but what only grows: a rank with that has nothing to say."""
        return bool(self.own) and has_logs_alone(self.own)

    def has_left(self, plan: SetPlan) -> bool:
        """Whether a file outside of the checkpoint says which one is the newest, and it is another one than the plan's by now."""
        whole = self.whole
        if not plan.layout or whole is None or whole.name == plan.name:
            return False
        return any(path != whole.name and not path.startswith(f"{whole.name}/") for path in whole.files)

    def choose(self, plan: SetPlan, shards: Shards | None) -> list[FileState]:
        """The files that belong in a set with this plan: those of its checkpoint, and what rests beside it. Half a checkpoint never."""
        whole, unfinished = self.whole, self.recognised.unfinished
        if self.ended_well or (not plan.layout and self.word is not None):
            return list(self.own)
        if not plan.layout and self.recognised.layout and whole is None:
            return []  # a framework writes here, and its first checkpoint is not whole
        if not plan.layout:
            return [] if self.has_logs_alone else [one for one in self.own if one.path not in unfinished]
        chosen = shards.files if shards else frozenset[str]()
        if whole is None:
            unfinished = unfinished - self._find_older(unfinished, chosen)
        if whole is not None:
            chosen, unfinished = (
                (whole.files, unfinished) if whole.name == plan.name else (chosen, unfinished | whole.files)
            )
        young = {_unit(path) for path, changed_s in self.changes.items() if self.at - changed_s <= BESIDE_S}
        out = unfinished | self.torn
        return [
            one
            for one in self.own
            if one.path in chosen or (one.path not in out and (one.grows or one.target or _unit(one.path) not in young))
        ]

    def _find_older(self, unfinished: frozenset[str], chosen: frozenset[str]) -> set[str]:
        """Shards of checkpoints before the chosen one: the rank with its marker has theirs."""
        began = min((self.changes[path] for path in chosen if path in self.changes), default=0.0)
        newest = dict[str, float]()
        for path in unfinished & self.changes.keys():
            newest[_unit(path)] = max(newest.get(_unit(path), 0.0), self.changes[path])
        return {path for path in unfinished if newest.get(_unit(path), began) < began}


def has_logs_alone(own: Sequence[FileState]) -> bool:
    """Whether there is nothing but what only grows, and links."""
    return all(one.grows or one.target for one in own)


def _unit(path: str) -> str:
    """What rests as one: a file that lies in the folder itself, or the files of a folder in it."""
    return posixpath.dirname(path) or path


def identify(word: Named | None) -> str:
    """Tells the checkpoints that a trainer names from each other."""
    return f"step {word.step}" if word else ""


class Recogniser:
    """CHECKPOINT_DIR of one rank. Not for use by two threads at once."""

    def __init__(
        self, folder: Folder, progress: ProgressFile, place: Position, *, layout: str, clock: Callable[[], float],
        changed_s: Callable[[FileState], float], note: Callable[[str], None],
    ) -> None:  # fmt: skip
        """`layout`: the name of one, `auto` or `none`; `clock` is this machine's; `changed_s` is when a file changed, by that clock."""
        self._folder, self._progress, self._layout, self._place = folder, progress, layout, place
        self._clock, self._changed_s, self._note = clock, changed_s, note
        self._evidence = FileEvidence(self._read)
        self._growth = Growth(folder.path, clock=clock, find_kind=self._evidence.find_kind)
        self._found: Named | None = None
        self._seen: Whole | None = None
        self._noted = ""
        self._told_busy = frozenset[str]()
        self._judgements = Judgements()
        self.resting = Resting(self._evidence, is_alone=place.ranks == 1)
        self._uses_layouts, self._is_bench = layout != "none", place.job.workbench is not None
        self.due_s: Callable[[], float] = lambda: 0.0
        """For how long a set has been due, in seconds; negative before that."""
        self.layout = ""
        """The layout that was recognised last; empty for none."""

    @property
    def word(self) -> Named | None:
        """The newest checkpoint that the trainer names itself: a look at one small file."""
        return self._progress.named

    @property
    def step(self) -> int:
        """The step of what lies in the folder, as the trainer says; -1 where it says none."""
        return self._progress.checkpoint_step()

    def read(self, at: float | None = None) -> Saved:
        """Looks at the folder; `at`: as of which time by this machine's clock, None for now. Raises Changed where it moves meanwhile."""
        return self.judge(self._folder.list_own(), at)

    def judge(self, own: Sequence[FileState], at: float | None = None) -> Saved:
        """Says which checkpoint these files are."""
        word, recognised, now = self._progress.named, Recognised(), self._clock() if at is None else at
        if self._uses_layouts and (word is None or not word.count):
            recognised = recognise(self._listing(own, now), self._layout)
            if word is not None and recognised.newest is not None and recognised.newest.at > word.at:
                word = None  # the trainer of this attempt names nothing any more
            self._tell(recognised)
        found = self._count(recognised.newest)
        marked = self._mark(own, word or found)
        changes = {one.path: self._changed_s(one) for one in marked if not one.grows}
        if word is None and not recognised.layout and not self._is_bench and not math.isinf(now):
            marked = self._leave_unfinished(marked, changes, now, is_over=at is not None)
        torn = self._find_torn(marked, recognised, now)
        unfit = next(
            (f"{path[:80]}... has a path of more than {PATH_BYTES} bytes" for path in self._folder.too_long), ""
        )
        return Saved(marked, changes, now, word, recognised, found, torn, self._is_beside, self._are_words, unfit)

    def _mark(self, own: Sequence[FileState], named: Named | None) -> list[FileState]:
        """Marks the files that only grow. Where one node has nothing else, these may be its checkpoint: they have to
        rest, without those that have grown for long beside them."""
        since = named.at - named.period_s if named and named.period_s else 0.0
        if self._is_bench:
            return self._growth.mark(own, since=since)
        lines_since = self._clock() - max(LEAST_GROWTH_S, self._place.every_s / 2)
        busy = {path for path in self.resting.busy if not has_name_of_weights(path)}
        marked = self._growth.mark(own, since=since, lines_since=lines_since, busy=busy)
        self.resting.observe(marked, self._clock(), self._place.every_s)
        self._tell_busy()
        if self._place.ranks > 1 or named is not None or not has_logs_alone(marked):
            return marked
        logs = {one.path for one in marked if self._growth.has_grown(one, lines_since)}
        has_others = any(one.path not in logs and not one.target for one in marked)
        return [one._replace(grows=has_others and one.path in logs) for one in marked]

    def _tell_busy(self) -> None:
        """Notes each file that is written all the time, once."""
        for path in sorted(self.resting.busy - self._told_busy):
            kept = "" if has_name_of_weights(path) else "have it where it only grows or has lines, and else "
            self._note(
                f"checkpoints: {path} is written all the time, while other files are saved: sets {kept}leave it out until it rests"
            )
        self._told_busy |= self.resting.busy

    def _leave_unfinished(
        self, own: Sequence[FileState], changes: Mapping[str, float], now: float, *, is_over: bool
    ) -> list[FileState]:
        late = self.due_s() > self._place.every_s
        left = self.resting.find_unfinished(
            own, changes, now, every_s=self._place.every_s, late=late and not is_over, is_over=is_over
        )
        return [one for one in own if one.path not in left]

    def _is_beside(self, one: FileState) -> bool:
        return one.grows or self._evidence.find_kind(one).is_beside

    def _are_words(self, one: FileState) -> bool:
        return self._evidence.find_kind(one) is FileKind.WORDS

    def take(self, own: Sequence[FileState]) -> None:
        """Takes note of what a set has, or a restore brought."""
        self.resting.take(own)
        self._growth.keep(own)

    def is_saving(self, now: float) -> bool:
        """Whether an unfinished file has changed shortly before `now`."""
        since = now - long_rest_s(self._place.every_s)
        return any(self._changed_s(one) >= since for one in self._folder.list_unfinished())

    def find_shards(self, saved: Saved, plan: SetPlan) -> Shards | None:
        """This rank's files of the checkpoint that a plan names by its place; None for a plan that has no place."""
        if saved.whole is not None and (saved.whole.layout, saved.whole.name) == (plan.layout, plan.name):
            return Shards(saved.whole.files)  # its marker says that they are whole
        return find_shards(self._listing(saved.own, saved.at), plan.layout, plan.name) if plan.layout else None

    def restored(self, *, named: bool, step: int) -> Saved:
        """Takes what lies in the folder for a checkpoint that is in S3 already. `named`: by this rank's own trainer."""
        if named and (saved := self.read()).own:
            self._progress.restored(step, max(saved.changes.values()))
        saved = self.read(math.inf)  # nothing here is being written
        if self._found is not None:
            self._found = Named(self._found.step, self._found.at, 0)
        self.take(saved.own)
        return saved

    def give_way(self) -> None:
        """Recognises no layout from now on: another rank's trainer names the checkpoints of all, and its word counts more."""
        self._uses_layouts, self.layout = False, ""

    def _find_torn(self, own: Sequence[FileState], recognised: Recognised, now: float) -> frozenset[str]:
        if not recognised.layout:
            return frozenset()
        known = recognised.unfinished | (recognised.newest.files if recognised.newest else frozenset())
        young = [one for one in own if one.path not in known and not one.grows and now - self._changed_s(one) < YOUNG_S]
        return frozenset(one.path for one in young if self.resting.is_torn(one))

    def _count(self, whole: Whole | None) -> Named | None:
        if whole is None:
            return None
        if self._found is None or whole != self._seen:
            before = self._found
            count = before.count + 1 if before else 1
            self._found = Named(
                whole.step, whole.at, count, max(0.0, whole.at - before.at) if before and before.count else 0.0
            )
        self._seen = whole
        return self._found

    def _tell(self, recognised: Recognised) -> None:
        """Notes what is recognised, once for each layout, and why nothing is whole, once for each reason."""
        if recognised.layout != self.layout:
            self.layout = recognised.layout
            if self.layout:
                self._note(f"checkpoints: recognised the layout {self.layout}")
        if recognised.newest is None and recognised.why and recognised.why != self._noted:
            self._noted = recognised.why
            self._note(f"checkpoints: nothing is whole yet: {recognised.why}")

    def _listing(self, own: Sequence[FileState], now: float) -> FolderListing:
        files = {one.path: one for one in own}
        return FolderListing(
            files, self._folder.folders, lambda path, start, size: self._bytes(files, path, start, size), self._changed_s, now,
            self._judgements,
        )  # fmt: skip

    def _read(self, one: FileState, start: int, size: int) -> bytes:
        return self._bytes({one.path: one}, one.path, start, size)

    def _bytes(self, files: Mapping[str, FileState], path: str, start: int, size: int) -> bytes:
        """Some bytes of a file; none where it went away. The trainer puts there what it likes, so no link is followed out of the folder."""
        seen = files.get(path)
        try:
            file = (seen.source if seen and seen.source else Source(str(self._folder.path), path)).open()
        except OSError:
            return b""
        try:
            return os.pread(file, size, start)
        except OSError:
            return b""
        finally:
            os.close(file)
