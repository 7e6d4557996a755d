"""Writes docs/benchmarks/containers.md: where the time goes with and without an image, and the summaries side by side."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

PARTS = {
    "boot_s": "launch to the agent's first line",
    "prepare_s": "code, restore and pull",
    "start_s": "nodes wait for each other",
    "step_s": "command to its first step",
    "whole_s": "**launch to first step**",
}
"""Figure, and what it is for a person."""
SHOWN = (
    "status",
    "attempts",
    "world_size",
    "metric",
    "artifacts",
    "log_streams",
    "instances_left",
    "state_path",
    "execution_s",
)
"""What both summaries of a job have that a person compares."""
OF_A_GRID = ("status", "outcomes", "trainings", "trainings_left", "state_path", "execution_s", "results")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One job, from its launch to its first step."""

    name: str
    boot_s: float
    prepare_s: float
    start_s: float
    step_s: float
    whole_s: float


HEAD = """# An image and no image

Written by `make bench-containers`, on {machine}.
What else the computer did meanwhile is in all figures, so compare columns, not pages.

[examples/image_job](../../examples/image_job) on two nodes: once from its image, once as code beside a command, in turn, {rounds} times
each; a run before them is not counted. Seconds of the rehearsal, whose durations are those of AWS divided by 20; what this computer
does itself (the pull, Python's start) is not divided. Every machine boots in the same time. The image:
{how}. Of the first node, medians, in brackets the least and the most:

"""
REMARK = """
A real image has gigabytes and not 80 MB, and a registry in the region is slower than one on loopback. What this shows is where an image
counts: in the pull, beside the code and the restore, and in the start of the container; the machine's boot and the wait of the nodes for
each other are the same.

## Both summaries

"""
LINE = """
The same image as a line of a grid ([line.jsonl](../../examples/image_job/line.jsonl)):

| | as a line |
|---|---|
"""


def page(rows: Sequence[Row], summaries: Mapping[str, Any], *, rounds: int, lacking: str, machine: str) -> str:
    """Returns the page; `lacking` says what the computer lacks for real images."""
    names = list(dict.fromkeys(row.name for row in rows))
    how = "built by buildah, pulled from a registry on loopback, in its own root"
    how = f"its files only, because {lacking}" if lacking else how
    shown = {name: asdict(found) for name, found in summaries.items()}
    jobs = {name: found for name, found in shown.items() if "metric" in found}
    (line,) = (found for found in shown.values() if "metric" not in found)
    figures = [[what, *(_figures(rows, name, part) for name in names)] for part, what in PARTS.items()]
    both = [[f"`{field}`", *(_text(found[field], name) for name, found in jobs.items())] for field in SHOWN]
    alone = [[f"`{field}`", _text(line[field], "")] for field in OF_A_GRID]
    return "".join(
        (
            HEAD.format(machine=machine, rounds=rounds, how=how),
            _table(["seconds", *names], figures),
            REMARK,
            _table(["", *jobs], both),
            LINE,
            _rows(alone),
        )
    )


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return f"{_rows([names])}|{'---|' * len(names)}\n{_rows(rows)}"


def _rows(rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _figures(rows: Sequence[Row], name: str, part: str) -> str:
    found = [getattr(row, part) for row in rows if row.name == name]
    return f"{statistics.median(found):.1f} ({min(found):.1f} to {max(found):.1f})"


def _text(value: Any, name: str) -> str:
    """Shows a value without what names the run."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        kept = ("outcome", "reason", "metrics", "billable_seconds")
        value = [{key: one[key] for key in kept} for one in value]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    run = name.replace(" ", "-")
    found = text if not run else _without(text, run)
    return found.replace("|", "\\|")


def _without(text: str, run: str) -> str:
    parts = text.split(run)
    return parts[0] + "".join(f"JOB{part.removeprefix('-').lstrip('0123456789')}" for part in parts[1:])
