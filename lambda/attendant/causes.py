"""Puts a cause together: our own sentences first, and below them, indented, what nodes said. Code of a job may have written that."""

from __future__ import annotations

from dataclasses import dataclass

HEAD = "Its nodes said:"
INDENT = "  "


@dataclass(frozen=True, slots=True)
class Cause:
    """A part of a cause."""

    text: str
    said: tuple[str, ...] = ()
    """Lines of nodes, each on one line already (`aws.heard`)."""
    place: str = ""
    """Where to read on."""


def format_cause(*parts: Cause | str) -> str:
    """Returns all sentences, then all that nodes said, then where to read on."""
    causes = [one if isinstance(one, Cause) else Cause(one) for one in parts]
    text = " ".join(one.text for one in causes if one.text)
    said = [line for one in causes for line in one.said]
    quoted = [HEAD, *(f"{INDENT}{line}" for line in said)] if said else []
    return "\n".join([text, *quoted, *(one.place for one in causes if one.place)]).strip()
