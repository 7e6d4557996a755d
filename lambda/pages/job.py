"""Writes the page of a job."""

from __future__ import annotations

from pages.document import render
from pages.facts import JobFacts


def write_job(facts: JobFacts) -> bytes:
    """Returns the page of a job as one file of HTML."""
    status = facts.status.name if facts.status else "unknown"
    return render("base.html", title=f"job {facts.name}: {status}")
