"""The reaper's memory: a document a region with what was suspicious, what people were told, and what was told to end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from aws.s3 import Bucket, Raced
from contract import keys
from contract.codec import Garbled, decode, encode
from reaper.policy import Rule, Suspect


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Of one kind of thing; ids to what is remembered. Times are AWS's, UTC epoch seconds."""

    looked_at: float = 0.0
    """Of the last whole look; kept for kinds that are not looked for in each pass."""
    suspects: dict[str, Suspect] = field(default_factory=dict)
    told: dict[str, Rule] = field(default_factory=dict)
    """People know that it was kept for want of knowledge."""
    ended: dict[str, float] = field(default_factory=dict)
    """When it was last told to end; gone from here once it does."""

    def ended_early(self, since: float) -> int:
        """How many were told to end since then, before their deadline."""
        early = {id_ for id_, suspect in self.suspects.items() if suspect.rule is not Rule.DEADLINE}
        return sum(at > since for id_, at in self.ended.items() if id_ in early)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """`keys.marks(region)`."""

    written_by: str = ""
    """The pass: makes two documents of equal contents differ, since S3 compares contents."""
    sections: dict[str, Section] = field(default_factory=dict)


class Book:
    """A region's marks as one pass holds them. Of two passes at once, the first write wins, and the other may not act."""

    def __init__(self, bucket: Bucket, region: str, writer: str) -> None:
        """Raises ClientError or BotoCoreError. A document that cannot be read has no marks, and is replaced."""
        self._bucket, self._key, self._writer = bucket, keys.marks(region), writer
        found = bucket.get_tagged(self._key)
        self._etag = found[1] if found else None
        try:
            self._marks = decode(Marks, found[0]) if found else Marks()
        except Garbled:
            self._marks = Marks()

    def section(self, kind: str) -> Section:
        return self._marks.sections.get(kind, Section())

    def ended_early(self, since: float) -> int:
        """How many another pass told to end since then, before their deadline."""
        return sum(section.ended_early(since) for section in self._marks.sections.values())

    def write(self, sections: Mapping[str, Section], *, claim: bool) -> bool:
        """Keeps the sections, beside those of other kinds; whether that is so.

        Writes where something changed, or where a `claim` has to be proven: False means that another pass wrote meanwhile.
        """
        whole = {**self._marks.sections, **{name: one for name, one in sections.items() if one != self.section(name)}}
        if whole == self._marks.sections and not claim:
            return True
        marks = replace(self._marks, written_by=self._writer, sections=whole)
        try:
            if self._etag is None:
                self._etag = self._bucket.create(self._key, encode(marks))
            else:
                self._etag = self._bucket.replace(self._key, encode(marks), self._etag)
        except Raced:
            return False
        self._marks = marks
        return True
