"""After an execution's end by no step of its own: nothing of its job runs, and its report says how it ended."""

from __future__ import annotations

from enum import Enum
from typing import Any

from aws import executions
from aws.facts import Status
from aws.s3 import Raced
from contract import names
from contract.errors import StillRunning
from ending.instances import Ended, Ending
from ending.report import cause_of_end, report, tells_of


class Aftermath(str, Enum):
    """What a look at an execution came to."""

    RUNS = "runs"
    """It runs, perhaps again: its own steps end its instances."""
    SUCCEEDED = "succeeded"
    """It passed its own Terminate."""
    NO_JOB = "no job"
    """It never got past Admit: nothing was launched for it."""
    CLEARED = "cleared"
    """Nothing of its job runs."""


def clear(end: Ending, execution: str) -> Aftermath:
    """Ends what an execution that is over left behind, and writes its report where none tells of this end.

    Looks at the execution first, whatever an event said of it. Raises StillRunning as long as something of its job runs or may
    appear; ClientError or a botocore connection error where AWS does not answer.
    """
    status = executions.status(execution)
    if status.runs:
        return Aftermath.RUNS
    if status.name == "SUCCEEDED":
        return Aftermath.SUCCEEDED
    name = execution.rpartition(":")[2]
    job = end.store.job(name) if names.JOB_PATTERN.fullmatch(name) else None
    if job is None or not job.belongs_to(execution, status.started_at):
        return Aftermath.NO_JOB
    last = end.store.last_attempt(name)
    ended = end.end(name, last + 1)  # its launcher may be about to write the next attempt's intent
    _tell(end, name, last, status, ended)
    return Aftermath.CLEARED


def _tell(end: Ending, job: str, attempts: int, status: Status, ended: Ended) -> None:
    """The machine's own report of this very end, which says more, stays."""

    def told(before: object, _tag: str) -> dict[str, Any] | None:
        ours = report(job, attempts, cause_of_end(status), ended.intents, ended.kept, before)
        return None if tells_of(before, ours) else ours

    try:
        end.store.tell_result(job, told)
    except Raced as problem:
        raise StillRunning(f"others write the report of job {job} again and again") from problem
