"""Refusals of how nodes shall check their machine."""

from __future__ import annotations

from tools.refusals.jobs.table import Section

HEALTH = Section(
    "health",
    "quick, deep, off",
    taken="off",
    rows=(
        ("one that does not exist", "thorough", '"thorough" is not a health check'),
        ("the empty text", "", '"" is not a health check'),
        ("false, in place of off", False, "false is not a health check"),
        ("true", True, "true is not a health check"),
        ("null", None, "null is not a health check"),
        ("a number", 1, "1 is not a health check"),
        ("a list", ["quick"], "a list is not a health check"),
        ("an object", {"gpus": "quick"}, "an object is not a health check"),
        ("capital letters", "Quick", '"Quick" is not a health check'),
        ("capital letters", "DEEP", '"DEEP" is not a health check'),
        ("two at once", "quick,deep", '"quick,deep" is not a health check'),
    ),
)
