"""Makes the final record of a line from what its backend says of its training; every caller makes the same record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from contract.grid import Line, LineOutcome, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFacts:
    """What a backend says of a line's training."""

    status: str
    """InProgress, Stopping, Completed, Failed or Stopped."""
    arn: str
    """Of the training or the execution."""
    region: str
    """Where it runs, or ran."""
    detail: str = ""
    """What it does, in the backend's own words."""
    said: str = ""
    """The backend's own message, for the log."""
    outcome: LineOutcome | None = None
    """None until nothing runs, or costs, any more."""
    reason: str = ""
    """Why it did not complete, for a person; empty where it completed, or has not ended."""
    own_failure: bool | None = None
    """Whether the training itself is the cause: its code ended with an error, or took longer than its line allows. False where machines, a
    quota, an image or a person ended it, or where it never began; None where it completed, or has not ended."""
    seconds: float | None = None
    """From its start to its end."""
    billable_seconds: float | None = None
    cost_usd: float | None = None
    artifact: str = ""
    """`s3://` address of a file, or of a folder."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Finite numbers by name."""
    metric_problems: dict[str, str] = field(default_factory=dict)
    """By name, why a metric has no value."""
    submitted_at: float | None = None
    """UTC epoch seconds, as `ended_at`."""
    ended_at: float | None = None
    log: str = ""
    """The console's address of its log."""

    @property
    def ended(self) -> bool:
        """Whether it is over: nothing runs, or costs, any more."""
        return self.outcome is not None


def to_epoch(moment: Any) -> float | None:
    """Returns UTC epoch seconds of a moment as boto3 makes it, or of one that is a number already; None for none."""
    if moment is None:
        return None
    return float(moment.timestamp() if hasattr(moment, "timestamp") else moment)


def record_of(line: Line, facts: LineFacts) -> Record:
    """Returns the Record of a training that has ended. Raises ValueError where it has not."""
    if facts.outcome is None:
        raise ValueError(f"{line.training} is {facts.status}: it has no record yet")
    return Record(
        index=line.index,
        line=line.line,
        region=facts.region,
        training=line.training,
        outcome=facts.outcome,
        reason=facts.reason,
        own_failure=facts.own_failure,
        arn=facts.arn,
        seconds=facts.seconds,
        billable_seconds=facts.billable_seconds,
        cost_usd=facts.cost_usd,
        artifact=facts.artifact,
        metrics=facts.metrics,
        metric_problems=facts.metric_problems,
        submitted_at=facts.submitted_at,
        ended_at=facts.ended_at,
        backend=line.backend,
        log=facts.log,
    )


def refused(line: Line, reason: str) -> Record:
    """Returns the Record of a line for which its backend made no training, and will make none."""
    return _without_training(line, LineOutcome.REFUSED, reason)


def not_started(line: Line, reason: str) -> Record:
    """Returns the Record of a line whose grid ended before its training was created."""
    return _without_training(line, LineOutcome.STOPPED, reason)


def _without_training(line: Line, outcome: LineOutcome, reason: str) -> Record:
    return Record(
        index=line.index,
        line=line.line,
        region=line.region,
        training=line.training,
        outcome=outcome,
        reason=reason,
        own_failure=False,
        billable_seconds=0.0,
        cost_usd=0.0,
        backend=line.backend,
    )
