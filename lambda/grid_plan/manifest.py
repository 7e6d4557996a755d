"""Reads a manifest line by line: CSV with or without a header, or JSON Lines, recognised by its contents."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from grid_plan import cells, separators, strict
from grid_plan.spellings import EDGES, ERROR_CELL, trim
from refusals.wording import plain

MOST_LINE = 100 * 1024
"""The most bytes of one line, and characters of one CSV record whose quotes contain line ends."""
SKIPPED = 1024**2
"""Bytes of an overlong line that are skipped at a time."""
JSON_FORM = 'an object on one line, as in {"region": "eu-central-1", "data": "s3://bucket/folder/"}'
BEGINNINGS = (
    (codecs.BOM_UTF32_LE, "is UTF-32; allowed: UTF-8"),
    (codecs.BOM_UTF32_BE, "is UTF-32; allowed: UTF-8"),
    (codecs.BOM_UTF16_LE, "is UTF-16, as Excel's 'Unicode text' is; allowed: UTF-8 (in Excel: CSV UTF-8)"),
    (codecs.BOM_UTF16_BE, "is UTF-16; allowed: UTF-8"),
    (b"\x1f\x8b", "is compressed with gzip; allowed: the plain text"),
    (b"PK\x03\x04", "is a ZIP archive, as Excel's own files are; allowed: plain text (in Excel: CSV UTF-8)"),
    (b"PAR1", "is a Parquet file; allowed: CSV or JSON Lines"),
)
"""First bytes of files that people mistake for text."""


class UnreadableManifest(ValueError):
    """Nothing of the manifest can be read; the message is a problem's second half."""


class BadLine(ValueError):
    """One line cannot be read."""

    def __init__(self, number: int, problem: str) -> None:
        super().__init__(problem)
        self.number, self.problem = number, problem


class Runaway(BadLine):
    """A quote is never closed and swallows line after line; the lines behind it cannot be told apart."""


@dataclass(frozen=True, slots=True)
class ManifestLine:
    """One line with content: its fields in the JSON form, and what is wrong with it."""

    number: int
    """Number of its first line, from 1."""
    fields: dict[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    whole: bool = True
    """False: the line itself could not be read, and there are no fields."""


def entries(file: IO[bytes]) -> Iterator[ManifestLine]:
    """Yields every line except blank ones and comments, in bounded memory. Raises Unreadable where nothing can be read."""
    lines = _Lines(file)
    while True:
        try:
            first = next(lines)
        except StopIteration:
            return
        except BadLine as bad:
            yield _bad(bad)
            continue
        if not _is_silent(first) and not separators.is_separator_line(first):
            break
    lines.again = first
    start = trim(first)
    if start.startswith("["):
        raise UnreadableManifest(f"begins with [, as one JSON document does; allowed: JSON Lines, {JSON_FORM}, or CSV")
    yield from _json_lines(lines) if start.startswith("{") else _csv(lines, separators.choose_separator(first))


class _Lines:
    """Decoded lines with their ends. `next` raises BadLine for a line that cannot be read; the call after that continues behind it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.number = 0
        """Number of the last line, from 1."""
        self.again: str | None = None
        """A line that is returned once more before the file continues."""

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        if self.again is not None:
            text, self.again = self.again, None
            return text
        raw = self._file.readline(MOST_LINE + 1)
        if not raw:
            raise StopIteration
        self.number += 1
        if self.number == 1:
            raw = _checked(raw)
        if len(raw) > MOST_LINE:
            while raw and not raw.endswith(b"\n"):
                raw = self._file.readline(SKIPPED)
            raise BadLine(self.number, f"is longer than {MOST_LINE:,} bytes; allowed: up to {MOST_LINE:,} bytes")
        if b"\0" in raw:
            raise BadLine(self.number, "holds NUL bytes; allowed: text in UTF-8")
        try:
            return raw.decode()
        except UnicodeDecodeError as problem:
            byte = f"byte 0x{raw[problem.start]:02x} at place {problem.start + 1}"
            raise BadLine(self.number, f"is not UTF-8 ({byte}); allowed: UTF-8") from None


def _checked(raw: bytes) -> bytes:
    """Returns the first line without a byte-order mark. Raises Unreadable where it does not begin a text in UTF-8."""
    for beginning, problem in BEGINNINGS:
        if raw.startswith(beginning):
            raise UnreadableManifest(problem)
    if raw[1:2] == b"\0" or raw[:1] == b"\0":
        raise UnreadableManifest("is UTF-16 or not text at all (its first letters are NUL bytes); allowed: UTF-8")
    return raw.removeprefix(codecs.BOM_UTF8)


def _is_silent(text: str) -> bool:
    """Whether a line is blank or a comment. A first cell in which a spreadsheet wrote an error begins with # as well, and is none."""
    start = text.lstrip(EDGES)
    return not start or (start.startswith("#") and not ERROR_CELL.match(start))


def _bad(bad: BadLine) -> ManifestLine:
    return ManifestLine(bad.number, problems=(bad.problem,), whole=False)


def _json_lines(lines: _Lines) -> Iterator[ManifestLine]:
    while True:
        try:
            text = next(lines)
            if not _is_silent(text):
                yield ManifestLine(lines.number, _object(text, lines.number))
        except StopIteration:
            return
        except BadLine as bad:
            yield _bad(bad)


def _object(text: str, number: int) -> dict[str, Any]:
    bare = trim(text)
    try:
        # Spaces in the place of marks: the place of a mistake stays that in the line.
        found = strict.loads(bare.rjust(text.index(bare) + len(bare)).ljust(len(text)))
    except ValueError as problem:
        raise BadLine(number, f"is not JSON ({plain(str(problem))}); allowed: {JSON_FORM}") from None
    if not isinstance(found, dict):
        raise BadLine(number, f"is JSON, but not an object; allowed: {JSON_FORM}")
    return found


class _Records:
    """Gives csv whole lines, one record at a time; between records it skips blank lines and comments."""

    def __init__(self, lines: _Lines) -> None:
        self._lines = lines
        self.start = 0
        """Number of the line where the record begins; 0 before the first record."""
        self._size = 0

    def begin(self) -> None:
        self.start = self._size = 0

    def __iter__(self) -> _Records:
        return self

    def __next__(self) -> str:
        text = next(self._lines)
        while not self.start and _is_silent(text):
            text = next(self._lines)
        self.start = self.start or self._lines.number
        self._size += len(text)
        if self._size > MOST_LINE:
            open_ = f"has a quote that is not closed within {MOST_LINE:,} characters, so nothing after it was read"
            raise Runaway(self.start, f"{open_}; allowed: an even number of quotes")
        return text


def _csv(lines: _Lines, separator: str) -> Iterator[ManifestLine]:
    records = _Records(lines)
    reader = csv.reader(records, strict=True, delimiter=separator)
    csv.field_size_limit(2 * MOST_LINE)
    names: list[str] | None = None
    while True:
        records.begin()
        try:
            row = next(reader)
        except StopIteration:
            return
        except BadLine as bad:
            yield _bad(bad)
            if isinstance(bad, Runaway):
                return
            continue
        except csv.Error as problem:
            yield _bad(BadLine(records.start, f"is not CSV ({_said(problem)}); allowed: cells as RFC 4180 has them"))
            continue
        if not any(trim(cell) for cell in row):
            continue
        if names is None:
            names, problems = cells.columns(row)
            if problems:
                what, _, may_be = problems[0].partition("; ")
                raise UnreadableManifest(f"has {what} (line {records.start}); {may_be}")
            if not cells.is_data(row):
                continue
        fields, wrong = cells.fields(names, row)
        yield ManifestLine(records.start, fields, tuple(wrong))


def _said(problem: csv.Error) -> str:
    """Puts csv's error into words for a person."""
    text = str(problem)
    if "new-line character seen" in text:
        return "its lines end in a bare carriage return"
    return "a quote is not closed" if "unexpected end of data" in text else plain(text)
