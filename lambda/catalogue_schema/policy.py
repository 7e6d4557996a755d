"""Decides which files of SQL are to be applied, and refuses what cannot be: takes files and what was applied, returns the rest."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

SEPARATOR = "--;"
"""A line of its own between two statements: the Data API takes one a call, and to find the ends of statements would take a parser."""
SEPARATING = re.compile(rf"^{SEPARATOR}$", re.MULTILINE)
NAMED = re.compile(r"(\d{4})_[a-z_]+\.sql")
ITERATIONS = 4096
"""PostgreSQL's own number for SCRAM-SHA-256."""


class SchemaRefused(ValueError):
    """The database has another history than the files; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlFile:
    """One numbered file; once it was applied it never changes."""

    number: int
    name: str
    statements: tuple[str, ...]
    sha256: str


def read_files(texts: Mapping[str, str]) -> list[SqlFile]:
    """Returns the files in their order, by name and text. Raises ValueError where the numbers are not 1, 2, 3 and so on."""
    files = [_read_file(name, text) for name, text in sorted(texts.items())]
    if [one.number for one in files] != list(range(1, len(files) + 1)):
        raise ValueError(f"files of SQL are {', '.join(sorted(texts))}; allowed: one for each number from 0001 on")
    return files


def _read_file(name: str, text: str) -> SqlFile:
    found = NAMED.fullmatch(name)
    if found is None:
        raise ValueError(f"a file of SQL is called {name}; allowed: four digits, _, small letters and .sql")
    parts = SEPARATING.split(text)
    if not all(part.strip() for part in parts):
        raise ValueError(
            f"{name} has an empty statement; allowed: one statement before and after each line {SEPARATOR}"
        )
    return SqlFile(
        number=int(found[1]),
        name=name,
        statements=tuple(part.strip() for part in parts),
        sha256=hashlib.sha256(text.encode()).hexdigest(),
    )


def find_unapplied(files: Sequence[SqlFile], applied: Mapping[int, str]) -> list[SqlFile]:
    """Returns the files that are still to be applied, in their order; `applied` is number to digest. Raises SchemaRefused where a file
    changed after it was applied, and where the database is of a later version."""
    known = {one.number: one for one in files}
    if later := sorted(applied.keys() - known.keys()):
        raise SchemaRefused(
            f"the catalogue's database has files of SQL up to {later[-1]:04d}, and this version has {len(files)}; "
            "allowed: that version of Trainyard, or a later one"
        )
    for number, digest in sorted(applied.items()):
        if known[number].sha256 != digest:
            raise SchemaRefused(
                f"{known[number].name} changed after it was applied to the catalogue's database; "
                "allowed: the file as it was, and a further file with the change"
            )
    return [one for one in files if one.number not in applied]


def verify_with(password: str, salt: bytes) -> str:
    """Returns the SCRAM-SHA-256 verifier of a password, as PostgreSQL stores it: a statement with this shows the password in no log.

    Raises ValueError where the password is not of visible ASCII, which PostgreSQL and RFC 4013 would write otherwise."""
    if not password or not all("!" <= one <= "~" for one in password):
        raise ValueError("the reader's secret has no usable password; allowed: visible characters of ASCII")
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, ITERATIONS)
    stored = hashlib.sha256(_sign(salted, b"Client Key")).digest()
    return f"SCRAM-SHA-256${ITERATIONS}:{_text(salt)}${_text(stored)}:{_text(_sign(salted, b'Server Key'))}"


def _sign(key: bytes, words: bytes) -> bytes:
    return hmac.digest(key, words, "sha256")


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def join_names(files: Iterable[SqlFile]) -> str:
    return ", ".join(one.name for one in files) or "none"
