"""The reaper's memory: one document a region with what was suspicious, what a message named, and what was ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from aws import pieces
from aws.errors import Raced
from aws.table import Item, Table
from contract import items
from contract.codec import Garbled, decode, encode
from reaper.policy import Rule, Suspect


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """What is remembered of one kind of thing, by id. Times are AWS's, UTC epoch seconds."""

    looked_at: float = 0.0
    """When the last complete scan was; only for kinds that are not scanned in each pass."""
    suspects: dict[str, Suspect] = field(default_factory=dict)
    reported: dict[str, Rule] = field(default_factory=dict)
    """Those that a message named because too little is known to end them, each with the rule."""
    ended: dict[str, float] = field(default_factory=dict)
    """When the reaper last asked AWS to end it; removed once it is gone."""

    def ended_early(self, since: float) -> int:
        """How many were ended since then, before their deadline."""
        early = {id_ for id_, suspect in self.suspects.items() if suspect.rule is not Rule.DEADLINE}
        return sum(at > since for id_, at in self.ended.items() if id_ in early)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """The document at `items.marks(region)`."""

    written_by: str = ""
    """The pass that wrote it: a conditional write that meets the same document counts as done, so two passes must not write the same."""
    sections: dict[str, Section] = field(default_factory=dict)


class Book:
    """A region's marks as one pass holds them. Of two passes at once, the one that writes first wins; the other ends nothing."""

    def __init__(self, table: Table, region: str, writer: str) -> None:
        """Raises ClientError or BotoCoreError. A document that cannot be understood counts as empty, and is replaced."""
        self._table, self._key, self._writer = table, items.marks(region), writer
        found = pieces.read(table, self._key)
        self._head: Item | None = found[0] if found else None
        try:
            self._marks = decode(Marks, found[1]) if found else Marks()
        except Garbled:
            self._marks = Marks()

    def section(self, kind: str) -> Section:
        return self._marks.sections.get(kind, Section())

    def ended_early(self, since: float) -> int:
        """How many other passes ended since then, before their deadline."""
        return sum(section.ended_early(since) for section in self._marks.sections.values())

    def write(self, sections: Mapping[str, Section], *, claim: bool) -> bool:
        """Stores these sections, and leaves those of other kinds. False where another pass wrote meanwhile.

        Writes if something changed, and always with `claim`, which proves that no other pass ends the same things.
        """
        whole = {**self._marks.sections, **{name: one for name, one in sections.items() if one != self.section(name)}}
        if whole == self._marks.sections and not claim:
            return True
        marks = replace(self._marks, written_by=self._writer, sections=whole)
        try:
            self._head = pieces.write(self._table, self._key, self._head, encode(marks), writer=self._writer)
        except Raced:
            return False
        self._marks = marks
        return True
