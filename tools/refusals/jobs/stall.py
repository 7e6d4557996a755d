"""Refusals of what shall follow where a training makes no progress."""

from __future__ import annotations

from tools.refusals.jobs.table import Section

ENTRY = "minutes (from 0.01 to 1440) and then (one of notify, restart, stop)"
STALL = Section(
    "stall",
    'an object of minutes and then, as in {"minutes": 30, "then": "restart"}',
    entry=ENTRY,
    taken={"minutes": 30, "then": "restart"},
    rows=(
        ("a number alone", 30, "30 is not an object"),
        ("a list", [30, "restart"], "a list is not an object"),
        ("an empty object", {}, ".minutes: is missing", ".then: is missing"),
        ("no reaction", {"minutes": 30}, ".then: is missing"),
        ("no minutes", {"then": "stop"}, ".minutes: is missing"),
        ("zero minutes", {"minutes": 0, "then": "stop"}, ".minutes: 0 is too small"),
        ("longer than a day", {"minutes": 1441, "then": "stop"}, ".minutes: 1441 is too large"),
        ("NaN", {"minutes": float("nan"), "then": "stop"}, ".minutes: NaN is not a finite number"),
        (
            "minutes as text",
            {"minutes": "30", "then": "stop"},
            '.minutes: "30" is not a number (numbers have no quotes)',
        ),
        (
            "a reaction that does not exist",
            {"minutes": 30, "then": "kill"},
            '.then: "kill" is not a reaction',
        ),
        ("two reactions", {"minutes": 30, "then": ["notify", "stop"]}, ".then: a list is not a reaction"),
        (
            "seconds in place of minutes",
            {"seconds": 1800, "then": "stop"},
            ".minutes: is missing",
            f".seconds: there is no such field; allowed: {ENTRY}",
        ),
    ),
)
