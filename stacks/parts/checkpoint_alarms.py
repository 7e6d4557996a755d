"""Alarms about the checkpoints of jobs that train: the newest is too old, or a commit takes too long.

They rest on metrics of the attendant. Code on a node can write values of the same names, and by them ring these alarms, as its own job does
by saving nothing; it can not silence them (`Alarms.on_most`).
"""

from __future__ import annotations

from aws_cdk import aws_cloudwatch as cloudwatch

from contract import metrics, names
from contract.environments import CheckpointLimits
from stacks.parts.alarms import STEP, AlarmEvidence, Alarms
from stacks.parts.function import Function

OLD, SLOW = "the newest checkpoint is old", "a commit takes long"
"""What the attendant's log says of a job then."""


def watch_checkpoints(alarms: Alarms, deployment: str, limits: CheckpointLimits, attendant: Function) -> None:
    """The intervals differ from job to job, so the metrics are in percent of them, and one alarm serves all jobs. The attendant's log names
    them, and the alarm leads there."""
    alarms.on_most(
        "checkpoints-old",
        _percent(metrics.CHECKPOINT_AGE, deployment),
        f"The newest checkpoint of a job that trains is older than {limits.oldest:g} of the job's intervals (checkpoint_minutes), or it "
        "has trained so long without one: a recovery would lose all of that. The attendant's log says which job, and what to do.",
        most=100 * limits.oldest,
        evidence=AlarmEvidence(function=attendant, lines=f'"{OLD}"'),
    )
    alarms.on_most(
        "commits-slow",
        _percent(metrics.COMMIT_SHARE, deployment),
        f"A commit of a job that trains took longer than {limits.longest_commit:g} of the job's intervals (checkpoint_minutes), so its "
        "checkpoints are older than the request asks for. The attendant's log says which job, and what to do.",
        most=100 * limits.longest_commit,
        evidence=AlarmEvidence(function=attendant, lines=f'"{SLOW}"'),
    )


def _percent(name: str, deployment: str) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=names.METRICS,
        metric_name=name,
        dimensions_map={metrics.DEPLOYMENT: deployment},
        statistic="Maximum",
        unit=cloudwatch.Unit.PERCENT,
        period=STEP,
    )
