"""What one needs to see when a rehearsed job failed: the history, what the functions said, what the nodes said."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console

from rehearsal.yard import Job

LINES = 40
"""Of each log; the rest is in the files."""


def diagnose(job: Job, console: Console) -> None:
    """Prints history, function logs, node logs and the consoles of the nodes, newest lines last."""
    execution = job.describe()
    console.rule(f"[red]{job.name}: {execution['status']}")
    console.print(execution.get("error", ""), execution.get("cause", ""), markup=False, highlight=False)
    console.rule("history")
    for event in job.history():
        console.print(f"{event['timestamp']:%H:%M:%S}  {event['type']}{_details(event)}", markup=False, highlight=False)
    for function, lines in job.yard.aws.workers.logs().items():
        _section(console, f"function {function}", lines)
    for stream in job.log_streams():
        _section(console, f"node {stream}", job.log(stream))
    for node in job.yard.nodes.all():
        _section(console, f"console of {node.machine.id}", node.console.read_text(errors="replace").splitlines())


def _details(event: dict[str, Any]) -> str:
    """Name, error and cause of an event, where it has them."""
    details: dict[str, Any] = next((value for key, value in event.items() if key.endswith("EventDetails")), {})
    told = {key: value for key, value in details.items() if key in {"name", "error", "cause", "resource"}}
    return f"  {json.dumps(told, default=str, ensure_ascii=False)[:600]}" if told else ""


def _section(console: Console, title: str, lines: list[str]) -> None:
    console.rule(title)
    for line in lines[-LINES:]:
        console.print(line.rstrip("\n"), markup=False, highlight=False)
