"""The message about a grid, for a person who started it or pays for it: what came of it, why, what it cost, where it lies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def subject(deployment: str, report: Mapping[str, Any]) -> str:
    completed, lines = report["completed"], report["lines"]
    how = "was stopped: " if report["problem"] else ""
    return f"Trainyard {deployment}: grid {report['grid']} {how}{completed} of {lines} lines completed"


def message(deployment: str, report: Mapping[str, Any]) -> str:
    """Words `report`, the content of report.json."""
    owner = f", owner {report['owner']}" if report["owner"] else ""
    parts = [
        f"Grid {report['grid']} of the deployment {deployment}{owner}, made of {report['manifest']}.",
        _ended(report["problem"]),
        _counted(report),
        _cost(report),
        _reasons(report["failures"]),
        _places(report),
    ]
    return "\n\n".join(part for part in parts if part)


def _ended(problem: Mapping[str, Any] | None) -> str:
    return f"It did not end by itself: {problem['error']}: {problem['cause']}" if problem else ""


def _counted(report: Mapping[str, Any]) -> str:
    counts = [f"{name} {count}" for name, count in report["outcomes"].items() if count]
    if report["unfinished"]:
        counts.append(f"without a record {report['unfinished']}")
    where = [
        f"- {region}: {', '.join(f'{name} {count}' for name, count in sorted(found.items()))}"
        for region, found in report["regions"].items()
    ]
    return "\n".join([f"Of {report['lines']} lines: {', '.join(counts) or 'nothing to count'}.", *where])


def _cost(report: Mapping[str, Any]) -> str:
    text = f"Billed: {report['billable_seconds'] / 3600:.2f} h of trainings, about ${report['cost_usd']:.2f}"
    if report["unpriced_lines"]:
        text += f", and {report['unpriced_lines']} lines without a known price"
    if report["cost_at_most_usd"] is not None:
        text += f"; at most ${report['cost_at_most_usd']:.2f} was planned"
    return text + "."


def _reasons(failures: list[Mapping[str, Any]]) -> str:
    lines = [f"- {one['lines']} lines, line {one['first_line']} the first: {one['reason']}" for one in failures]
    return "\n".join(["Why lines did not complete:", *lines]) if lines else ""


def _places(report: Mapping[str, Any]) -> str:
    results = report["results"]
    again = (
        f"\nTo start those that did not complete again, start a grid of another name with the manifest {results['failed']}"
        if report["completed"] < report["lines"]
        else ""
    )
    return f"Page: {report['page']}\nResults: {results['csv']} (and {results['jsonl']}).{again}"
