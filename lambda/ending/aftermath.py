"""Cleans up after an execution that did not end by its own steps: ends its job's instances and writes when and how it ended."""

from __future__ import annotations

from enum import Enum
from typing import Any

from aws import executions
from aws.errors import Raced
from aws.facts import Status
from contract import names
from contract.errors import StillRunning
from contract.jobs import Job
from ending.costs import describe_cost
from ending.instances import Ended, Ending
from ending.report import build_report, cause_of_end, covers_end


class Aftermath(str, Enum):
    """What the cleanup found of an execution."""

    RUNS = "runs"
    """It runs, perhaps after a redrive: its own steps end its instances."""
    SUCCEEDED = "succeeded"
    """It succeeded, so its own Terminate ended its instances."""
    NO_JOB = "no job"
    """It never got past Admit, so nothing was launched for it."""
    CLEARED = "cleared"
    """It is over, and no instance of its job runs."""


def clean_up(end: Ending, execution: str) -> Aftermath:
    """Ends the instances of an execution that is over, notes when they had ended, and writes the job's report unless it already covers
    this end.

    Asks Step Functions first, whatever an event said. Raises StillRunning as long as an instance of the job runs or may
    appear, and ClientError or a botocore connection error where AWS does not answer.
    """
    status = executions.status(execution)
    if status.runs:
        return Aftermath.RUNS
    if status.name == "SUCCEEDED":
        return Aftermath.SUCCEEDED
    name = execution.rpartition(":")[2]
    job = end.state.job(name) if names.JOB_PATTERN.fullmatch(name) else None
    if job is None or not job.belongs_to(execution, status.started_at):
        return Aftermath.NO_JOB
    last = end.state.last_attempt(name)
    ended = end.end(name, last + 1)  # its launcher may be about to write the next attempt's intent
    if last:  # a redriven execution pays for what ran, and not for the days until then
        end.state.note_end(name, last, ended.at, cause_of_end(status))
    _update_report(end, job, last, status, ended)
    return Aftermath.CLEARED


def _update_report(end: Ending, job: Job, attempts: int, status: Status, ended: Ended) -> None:
    """Writes the report, unless the machine itself reported this end, whose report says more, or the bucket is gone for good."""
    if not end.home.exists():
        return

    cost = describe_cost(end.state, job, ended)

    def replace_report(before: object, _tag: str) -> dict[str, Any] | None:
        ours = build_report(job.id, attempts, cause_of_end(status), ended.intents, ended.kept, before, at=ended.at)
        return None if covers_end(before, ours, status.ended_at) else ours | {"cost": cost}

    try:
        end.home.tell_result(job.id, replace_report)
    except Raced as problem:
        raise StillRunning(f"other writers replace the report of job {job.id} again and again") from problem
