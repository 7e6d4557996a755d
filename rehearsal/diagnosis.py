"""Shows why a rehearsed job failed: the cause first, then the last lines of nodes and functions; writes everything to files."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from contract.text import one_line
from rehearsal.deployment import DeploymentFailed
from rehearsal.yard import StartedJob

LINES = 12
"""The most lines of a log on the screen; a file has the whole log."""
MOST_LINE = 2000
"""Characters of a line on the screen."""
TROUBLE = re.compile(r"error|exception|traceback|fail|refused|denied|timed out|cannot|critical", re.IGNORECASE)


def diagnose(job: StartedJob, console: Console, out: Path) -> None:
    """Writes history, function logs and the nodes' consoles to `out`; prints the cause and the lines about it."""
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
        show_lines(console, f"node {stream}", job.log(stream)[-LINES:])
    for name, lines in files.items():
        if name.startswith("function-") and (telling := matters(lines)):
            show_lines(console, name, telling)
    console.print(
        f"whole logs of functions, nodes' consoles and the history: {out / 'logs'}", markup=False, highlight=False
    )


def diagnose_deployment(problem: DeploymentFailed, console: Console, out: Path) -> None:
    """Prints the cause first, then the functions' lines about errors; writes everything that the command and functions printed to `out`."""
    console.rule("[red]the deployment failed")
    console.print(str(problem), markup=False, highlight=False)
    logs = out / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "deployment.log").write_text(problem.whole)
    for name, lines in problem.functions.items():
        (logs / f"function-{name}.log").write_text("\n".join(lines) + "\n")
        if telling := matters(lines):
            show_lines(console, f"function {name}", telling)
    console.print(f"whole logs of the command and of functions: {logs}", markup=False, highlight=False)


def matters(lines: Sequence[str]) -> list[str]:
    """Returns the last lines of a function's log that mention errors; of a message with several lines, its last ones."""
    return [line for text in lines if TROUBLE.search(text) for line in text.splitlines()][-LINES:]


def _files(job: StartedJob) -> dict[str, list[str]]:
    """Returns the lines of each file, by file name."""
    found = {"history": [f"{event['timestamp']:%H:%M:%S}  {event['type']}{_details(event)}" for event in job.history()]}
    found |= {f"function-{name}": lines for name, lines in job.yard.aws.workers.logs().items()}
    for node in job.yard.nodes.all():
        found[f"console-{node.machine.id}"] = node.console.read_text(errors="replace").splitlines()
    return {f"{name}.log": lines for name, lines in found.items()}


def _details(event: dict[str, Any]) -> str:
    """Returns name, error and cause of an event, if it has them."""
    details: dict[str, Any] = next((value for key, value in event.items() if key.endswith("EventDetails")), {})
    told = {key: value for key, value in details.items() if key in {"name", "error", "cause", "resource"}}
    return f"  {json.dumps(told, default=str, ensure_ascii=False)[:600]}" if told else ""


def show_lines(console: Console, title: str, lines: Sequence[str]) -> None:
    """Prints lines of a log below a title."""
    console.rule(title)
    for line in lines:
        console.print(one_line(line, MOST_LINE), markup=False, highlight=False)  # code of a job may steer a terminal
