"""Text that others wrote: code of a job, a file's name, a tag. What people read of it begins no line of its own."""

from __future__ import annotations


def one_line(text: str, most: int) -> str:
    """Returns the text on one line of at most `most` characters. What cannot be seen, steers a terminal or turns the direction of reading
    becomes a space; spaces at the beginning stay."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text[: most + 1].expandtabs(4)).rstrip()
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


SHOWN = 80
"""The most characters of a value, or of a name, that a line repeats."""


def plain(text: str, most: int = SHOWN) -> str:
    """Returns a text on one line, shortened, with every invisible character escaped; two quotes for an empty text."""
    seen = "".join(letter if letter.isprintable() else _escape(letter) for letter in text[: most + 1])
    return (seen if len(seen) <= most else f"{seen[:most]}...") or '""'


def _escape(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"
