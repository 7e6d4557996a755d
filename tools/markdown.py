"""Text of others in a table of Markdown."""

from __future__ import annotations

import re


def plain(text: str) -> str:
    """Markdown means nothing in it."""
    return re.sub(r"([\\`*\[\]<>|$]|(?<!\w)_|_(?!\w))", r"\\\1", text)


def code(text: str, width: int) -> str:
    """As code, its first `width` characters."""
    return f"`` {text if len(text) <= width else f'{text[:width]}...'} ``".replace("|", "\\|")
