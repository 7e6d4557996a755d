"""Refusals of the field that a grid writes into the requests of its lines."""

from __future__ import annotations

from tools.refusals.jobs.table import Section

ALLOWED = "nothing: a grid writes it into the requests of its own lines"
GRID = "arn:aws:states:eu-central-1:123456789012:execution:yard-grid:sweep-7"
OTHER = "arn:aws:states:eu-central-1:123456789012:execution:lab-grid:sweep-7"

GRID_LINE = Section(
    "grid_line",
    ALLOWED,
    entry=ALLOWED,
    taken={"execution": GRID, "index": 7},
    name="yard-sweep-7-0123456789ab-7",
    rows=(
        ("a number", 7, "7 is not an object"),
        (
            "the name of a grid",
            {"execution": "sweep-7", "index": 0},
            '.execution: "sweep-7" does not have the right form',
        ),
        ("no line of it", {"execution": GRID}, ".index: is missing"),
        ("a line before the first", {"execution": GRID, "index": -1}, ".index: -1 is too small"),
        ("a line beyond all grids", {"execution": GRID, "index": 10**10}, f".index: {10**10} is too large"),
        (
            "the input of a line in an execution of its own",
            {"execution": GRID, "index": 7},
            "job-1 is not the name of this line's execution",
        ),
        ("a grid of another deployment", {"execution": OTHER, "index": 0}, f"{OTHER} is no grid of yard"),
    ),
)
