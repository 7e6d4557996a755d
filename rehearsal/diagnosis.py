"""What one needs to see when a rehearsed job failed: why first, then the end of what nodes and functions said; all of it in files."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from rehearsal.deployment import DeploymentFailed
from rehearsal.yard import StartedJob

LINES = 12
"""Of a log on the screen; the whole lies in a file."""
TROUBLE = re.compile(r"error|exception|traceback|fail|refused|denied|timed out|cannot|critical", re.IGNORECASE)


def diagnose(job: StartedJob, console: Console, out: Path) -> None:
    """Writes history, function logs and the nodes' consoles into `out`; prints the cause and what speaks of it."""
    execution = job.describe()
    console.rule(f"[red]{job.name}: {execution['status']}")
    why = ": ".join(filter(None, (execution.get("error", ""), execution.get("cause", ""))))
    console.print(why or f"in {', '.join(job.states()[-1:])}", markup=False, highlight=False)
    files = _files(job)
    for name, lines in files.items():
        target = out / "logs" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n".join(lines) + "\n")
    for stream in job.log_streams():
        _section(console, f"node {stream}", job.log(stream)[-LINES:])
    for name, lines in files.items():
        if name.startswith("function-") and (telling := matters(lines)):
            _section(console, name, telling)
    console.print(
        f"whole logs of functions, nodes' consoles and the history: {out / 'logs'}", markup=False, highlight=False
    )


def diagnose_deployment(problem: DeploymentFailed, console: Console, out: Path) -> None:
    """The cause first, then what functions said of trouble; what the command and the functions printed as a whole goes to `out`."""
    console.rule("[red]the deployment failed")
    console.print(str(problem), markup=False, highlight=False)
    logs = out / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "deployment.log").write_text(problem.whole)
    for name, lines in problem.functions.items():
        (logs / f"function-{name}.log").write_text("\n".join(lines) + "\n")
        if telling := matters(lines):
            _section(console, f"function {name}", telling)
    console.print(f"whole logs of the command and of functions: {logs}", markup=False, highlight=False)


def matters(lines: Sequence[str]) -> list[str]:
    """The last lines of a function's log that speak of trouble, with their own last lines where they have several."""
    return [line for text in lines if TROUBLE.search(text) for line in text.splitlines()][-LINES:]


def _files(job: StartedJob) -> dict[str, list[str]]:
    """File name to lines."""
    found = {"history": [f"{event['timestamp']:%H:%M:%S}  {event['type']}{_details(event)}" for event in job.history()]}
    found |= {f"function-{name}": lines for name, lines in job.yard.aws.workers.logs().items()}
    for node in job.yard.nodes.all():
        found[f"console-{node.machine.id}"] = node.console.read_text(errors="replace").splitlines()
    return {f"{name}.log": lines for name, lines in found.items()}


def _details(event: dict[str, Any]) -> str:
    """Name, error and cause of an event, where it has them."""
    details: dict[str, Any] = next((value for key, value in event.items() if key.endswith("EventDetails")), {})
    told = {key: value for key, value in details.items() if key in {"name", "error", "cause", "resource"}}
    return f"  {json.dumps(told, default=str, ensure_ascii=False)[:600]}" if told else ""


def _section(console: Console, title: str, lines: list[str]) -> None:
    console.rule(title)
    for line in lines:
        console.print(line.rstrip("\n"), markup=False, highlight=False)
