"""Follows an execution until it ends: what happened, what its nodes do, and at its end the outcome, the cost and where things are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from contract import links
from contract.errors import InvalidRequest
from contract.execution_facts import explain_end
from contract.reports import NodeReport, Phase
from contract.roles import Role, name_rank
from pages.words import count, duration, number, usd
from trainyard.deployment import Deployment
from trainyard.patience import PatientReader, Timekeeper
from trainyard.printer import Printer
from trainyard.stops import CannotProceed, CommandExit
from trainyard.story import Story
from trainyard.watching import NodeReports, Watched, read_execution, read_story

EVERY_S = 5.0
"""Seconds between two looks."""
STEPS_EVERY_S = 30.0
"""A step that goes on is a line no more often."""
SHOWN_RANKS = 8
"""Nodes that a line names one by one; of more it counts phases."""
FORGOTTEN = "Step Functions no longer has the execution."
UNKNOWN_S = (1.0, 2.0, 4.0, 8.0)
"""Pauses in which Step Functions may learn of an execution that it has just started."""


@dataclass(slots=True)
class NodeLines:
    """Decides which lines about nodes are new."""

    phases: dict[int, Phase] = field(default_factory=dict)
    attempt: int = 0
    step: int = -1
    said_at: float = float("-inf")

    def choose_line(
        self, attempt: int, reports: Mapping[int, NodeReport], now: float, roles: Sequence[Role] = ()
    ) -> str:
        """Returns the line to print of what the nodes of an attempt report; empty where it would say nothing new."""
        phases = {rank: one.phase for rank, one in reports.items()}
        first = reports.get(0)
        step = first.progress.step if first and first.progress else -1
        is_new = (attempt, phases) != (self.attempt, self.phases)
        if not phases or (not is_new and (step == self.step or now < self.said_at + STEPS_EVERY_S)):
            return ""
        self.attempt, self.phases, self.step, self.said_at = attempt, phases, step, now
        return describe_nodes(reports, roles)


def describe_nodes(reports: Mapping[int, NodeReport], roles: Sequence[Role] = ()) -> str:
    """Says in a line what the nodes do, and how far rank 0 has come. `roles`: those of the job."""
    if len(reports) > SHOWN_RANKS:
        counts = dict[str, int]()
        for one in reports.values():
            counts[one.phase.value] = counts.get(one.phase.value, 0) + 1
        nodes = ", ".join(f"{number} {phase}" for phase, number in counts.items())
    else:
        nodes = ", ".join(f"{name_rank(roles, rank)} {one.phase.value}" for rank, one in reports.items())
    first = reports.get(0)
    if first is None or first.progress is None:
        return nodes
    metric = first.progress.diverged if first.progress.metric is None else number(first.progress.metric)
    return f"{nodes}; step {first.progress.step}{metric and f', metric {metric}'}"


def show_time(at: float) -> str:
    """Returns the local time of day."""
    return datetime.fromtimestamp(at).strftime("%H:%M:%S")  # noqa: DTZ006  (a person's own time)


def follow_job(
    deployment: Deployment, job: Watched, printer: Printer, *, every_s: float = EVERY_S, clock: Timekeeper | None = None
) -> int:
    """Prints what is new until the job's execution ends, and then its end. Returns the exit code: 0 where it succeeded, 2 where it was
    refused, 1 where it failed. Raises what AWS answers once patience is over, and CannotProceed where the execution is gone."""
    clock = clock or Timekeeper()
    patience = PatientReader(printer.say, clock)
    nodes, progress, told = NodeReports(deployment, job.name), NodeLines(), 0
    was_denied = False
    while True:
        # First the status: what the history says afterwards is at least as new.
        now = read_followed(deployment, job, patience)
        story = patience.read(lambda: read_story(job.arn))
        for at, line in story.lines[told:]:
            _report(printer, at, line)
        told = max(told, len(story.lines))
        if not now.status.runs:
            return show_end(deployment, now, story, printer)
        reports = patience.read(lambda story=story: nodes.read(story.attempt))  # type: ignore[misc]
        if line := progress.choose_line(len(story.tries), reports, clock.now(), nodes.roles):
            _report(printer, clock.now(), line)
        if nodes.denied and not was_denied:
            was_denied = True
            printer.say(
                f"What nodes report is not shown: {nodes.denied}. `trainyard logs {job.name} -f` has their output."
            )
        clock.sleep(every_s)


def read_followed(deployment: Deployment, followed: Watched, patience: PatientReader) -> Watched:
    """Returns the execution as it is now; one that began a moment ago may be unknown yet. Raises CannotProceed where it stays unknown."""
    for pause in (*UNKNOWN_S, None):
        found = patience.read(lambda: read_execution(deployment, followed.kind, followed.name))
        if found is not None:
            return found
        if pause is not None:
            patience.clock.sleep(pause)
    raise CannotProceed(f"{followed.name}: {FORGOTTEN}")


def _report(printer: Printer, at: float, line: str) -> None:
    if printer.as_json:
        printer.document({"at": at, "event": line})
    else:
        printer.say(f"{show_time(at)}  {line}")


def show_end(deployment: Deployment, job: Watched, story: Story, printer: Printer) -> int:
    """Prints how a job ended. Returns the exit code."""
    whole = describe_end(deployment, job, story)
    printer.document(whole)
    if not printer.as_json:
        for line in _word_end(job, whole):
            printer.say(line)
    return choose_exit(job)


def choose_exit(ended: Watched) -> int:
    """Returns the exit code of an execution that has ended."""
    if ended.status.name == "SUCCEEDED":
        return CommandExit.DONE
    return CommandExit.STOPPED if ended.status.error == InvalidRequest.__name__ else CommandExit.FAILED


def describe_end(deployment: Deployment, job: Watched, story: Story) -> dict[str, Any]:
    """Returns how a job ended, for a program."""
    status = job.status
    went_well = status.runs or status.name == "SUCCEEDED"
    error, cause = ("", "") if went_well else explain_end(status.name, status.error, status.cause)
    return {
        "job": job.name,
        "status": status.name,
        "error": error,
        "cause": cause,
        "attempts": len(story.tries),
        "seconds": None
        if status.ended_at is None or status.started_at is None
        else max(0.0, status.ended_at - status.started_at),
        "cost_usd_at_most": story.cost_at_most(status.ended_at or 0.0) if story.tries else 0.0,
        "progress": job.output.get("progress"),
        "artifacts": job.output.get("artifacts"),
        "links": job.links(deployment),
    }


def show_cost(usd_at_most: float | None) -> str:
    """Words what a job has cost."""
    return "unknown" if usd_at_most is None else f"{usd(usd_at_most)} at most"


def _word_end(job: Watched, whole: Mapping[str, Any]) -> list[str]:
    took = "" if whole["seconds"] is None else f" after {duration(whole['seconds'])}"
    attempts = f" in {whole['attempts']} attempts" if whole["attempts"] > 1 else ""
    lines = [f"{job.name}: {whole['status']}{took}{attempts}"]
    if whole["error"]:
        lines += [f"{whole['error']}: {links.cut_links(whole['cause'])}"]
    if whole["attempts"]:
        lines.append(f"cost: {show_cost(whole['cost_usd_at_most'])}")
        artifacts = whole["artifacts"]
        kept = artifacts.get("artifacts") if isinstance(artifacts, dict) else None
        known = isinstance(kept, int) and not isinstance(kept, bool)
        files = f"{count(kept, 'file')}:" if known else "see"
        lines.append(f"artifacts: {files} trainyard artifacts {job.name}")
        lines.append(f"page: trainyard report {job.name}")
    lines.append(f"console: {whole['links']['execution']}")
    return lines
