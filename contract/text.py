"""Text that others wrote: code of a job, a file's name, a tag. What people read of it begins no line of its own."""

from __future__ import annotations


def one_line(text: str, most: int) -> str:
    """Returns the text on one line of at most `most` characters. What cannot be seen, steers a terminal or turns the direction of reading
    becomes a space; spaces at the beginning stay."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text[: most + 1].expandtabs(4)).rstrip()
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."
