"""Puts text from elsewhere into a table of Markdown."""

from __future__ import annotations

import re


def plain(text: str) -> str:
    """Escapes everything that Markdown would interpret."""
    return re.sub(r"([\\`*\[\]<>|$]|(?<!\w)_|_(?!\w))", r"\\\1", text)


def code(text: str, width: int) -> str:
    """Returns the first `width` characters, as code."""
    return f"`` {text if len(text) <= width else f'{text[:width]}...'} ``".replace("|", "\\|")
