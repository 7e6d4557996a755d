"""Shows why a rehearsed job failed: the cause first, and what to do; then logs that the cause does not quote. Files have all."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from contract.errors import BY_NAME, InvalidRequest, TrainingFailed
from contract.execution_facts import SUCCEEDED
from contract.text import one_line
from rehearsal.deployment import DeploymentFailed
from rehearsal.runs import shorten
from rehearsal.yard import StartedJob

LINES = 12
"""The most lines of a log on the screen; a file has the whole log."""
MOST_LINE = 2000
"""Characters of a line on the screen."""
ERRORS = frozenset({"ERROR", "CRITICAL"})
"""Levels of a function's log that are shown."""
PLAIN_ERROR = re.compile(r"^\[(ERROR|CRITICAL)\]|^Traceback |Task timed out|Runtime\.\w+")
"""What Lambda itself writes of an error, as no JSON."""
CONSOLE = re.compile(r"""https://[^\s<"]*\.console\.[^\s<"]*""")
"""An address of the AWS console, where a rehearsal's account is not."""
STREAM = re.compile(r"The whole log: log group \S+, stream \S+?/(\d+)/(\d+)\.")
OWN_FRAME = re.compile(r'(File ")/\S*?/var/lib/trainyard/')
"""A file on a node's disk: where the local AWS keeps that disk tells a person nothing."""
NEXT = {
    InvalidRequest.__name__: "correct the request, and rehearse it again",
    TrainingFailed.__name__: "correct the code or the command, and rehearse it again",
}
"""What to do about errors that are the person's own; the causes of others say it."""


def diagnose(job: StartedJob, console: Console, out: Path) -> None:
    """Writes history, function logs and the nodes' consoles to `out`; prints the cause, what to do, and logs."""
    execution, files = job.describe(), _files(job)
    for name, lines in files.items():
        target = out / "logs" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n".join(lines) + "\n")
    if execution["status"] == SUCCEEDED:
        return  # what is missing is no error of the execution
    error = str(execution.get("error", ""))
    console.rule(f"[red]{job.name}: {execution['status']}")
    why = ": ".join(filter(None, (error, execution.get("cause", ""))))
    for line in localise(why, out) or [f"in {', '.join(job.states()[-1:])}"]:
        console.print(line, markup=False, highlight=False)
    if error in NEXT:
        console.print(f"Next: {NEXT[error]}.", markup=False, highlight=False)
    else:
        for stream in job.log_streams():
            show_lines(console, f"node {stream}", job.log(stream)[-LINES:])
    if error not in BY_NAME:
        show_functions(console, {name: lines for name, lines in files.items() if name.startswith("function-")})
    everything = f"Logs of functions, nodes and their consoles, and the history: {shorten(out / 'logs')}"
    console.print(everything, markup=False, highlight=False)


def localise(cause: str, out: Path) -> list[str]:
    """Returns the lines of a cause with files of this computer in the place of the console, whose account does not exist."""
    lines = [one for one in cause.splitlines() if not CONSOLE.search(one)]
    lines = [
        STREAM.sub(lambda found: f"The whole log: {shorten(out / 'logs' / f'{found[1]}-{found[2]}.log')}", one)
        for one in lines
    ]
    lines = [OWN_FRAME.sub(r"\1", one) for one in lines]
    while lines and not lines[-1].strip():
        lines.pop()
    return [one_line(one, MOST_LINE) for one in lines]


def show_functions(console: Console, logs: dict[str, list[str]]) -> None:
    """Prints the errors in the logs of functions, by file."""
    for name, lines in logs.items():
        if telling := matters(lines):
            show_lines(console, name, telling)


def diagnose_deployment(problem: DeploymentFailed, console: Console, out: Path) -> None:
    """Prints the cause first, then the functions' errors; writes everything that the command and functions printed to `out`."""
    console.rule("[red]the deployment failed")
    console.print(str(problem), markup=False, highlight=False)
    logs = out / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "deployment.log").write_text(problem.whole)
    for name, lines in problem.functions.items():
        (logs / f"function-{name}.log").write_text("\n".join(lines) + "\n")
    show_functions(console, {f"function {name}": [*lines] for name, lines in problem.functions.items()})
    console.print(f"Logs of the command and of functions: {shorten(logs)}", markup=False, highlight=False)


def matters(lines: Sequence[str]) -> list[str]:
    """Returns the last lines of a function's log that are errors; of a message with several lines, its last ones."""
    return [line for text in lines for line in _read_error(text)][-LINES:]


def _read_error(text: str) -> list[str]:
    """Returns the lines of a log's entry that is an error: of a structured one its message and the error itself, without its frames."""
    try:
        entry = json.loads(text)
    except ValueError:
        return text.splitlines() if PLAIN_ERROR.search(text) else []
    if not isinstance(entry, dict) or str(entry.get("level", "")).upper() not in ERRORS:
        return []
    said = " ".join(str(entry[key]) for key in ("message", "errorMessage") if entry.get(key))
    raised = str(entry.get("exception") or "").strip().splitlines()
    return [said, *raised[-1:]] if said or raised else [text]


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
