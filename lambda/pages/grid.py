"""Writes the page of a grid."""

from __future__ import annotations

from pages.document import render
from pages.facts import GridFacts


def write_grid(facts: GridFacts) -> bytes:
    """Returns the page of a grid as one file of HTML."""
    status = facts.status.name if facts.status else "unknown"
    return render("base.html", title=f"grid {facts.name}: {status}")
