"""Refusals of what people shall be told of."""

from __future__ import annotations

from tools.refusals.jobs.table import Section

WORDS = "done, failed, recovered, stalled"
NOTIFY = Section(
    "notify",
    f"a list of different events, each one of {WORDS}",
    entry=f"one of {WORDS}",
    taken=["failed", "recovered"],
    left_out=[],
    rows=(
        ("an event alone", "failed", '"failed" is not a list'),
        ("true", True, "true is not a list"),
        ("an unknown event", ["lost"], '.0: "lost" is not a known event'),
        ("a capital letter", ["Failed"], '.0: "Failed" is not a known event'),
        ("null in it", ["done", None], ".1: null is not a known event"),
        ("an address", ["ann@example.com"], '.0: "ann@example.com" is not a known event'),
        ("an event twice", ["failed", "failed"], "failed is named more than once"),
        ("more events than there are", ["done", "failed", "recovered", "stalled", "done"], "has 5 entries"),
    ),
)
