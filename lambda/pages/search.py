"""Writes the page of a search."""

from __future__ import annotations

from pages.document import render
from pages.facts import SearchFacts


def write_search(facts: SearchFacts) -> bytes:
    """Returns the page of a search as one file of HTML."""
    status = facts.status.name if facts.status else "unknown"
    return render("base.html", title=f"search {facts.name}: {status}")
