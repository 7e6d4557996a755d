"""Failures of a node: the job's own, which a new attempt would meet again, and the machine's, which it may not."""

from __future__ import annotations

import errno

from contract.errors import NodeLost, NodeUnhealthy, TrainingFailed

LARGER = "the disk is full: ask for a larger volume_gb"


class CannotStart(Exception):
    """The job is the cause: a new attempt would fail again. Reported as TrainingFailed."""


class MachineTrouble(Exception):
    """The machine or the network is the cause: a new attempt may succeed. Reported as NodeLost."""


class Unhealthy(Exception):
    """The machine's health check has found something. Reported as NodeUnhealthy."""


class Ordered(Exception):
    """An order came before the training process was started."""


def is_full(problem: BaseException) -> bool:
    """Whether the disk is full. The next attempt would fill its disk as well, since that has the same size."""
    return isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT)


def classify_problem(problem: Exception) -> tuple[str, str]:
    """Returns the error's name and the reason that a node reports. An unexpected error counts as the machine's (S3 does not answer, a
    disk breaks), so that it does not end a job that could go on."""
    if is_full(problem):
        return TrainingFailed.__name__, f"{LARGER} ({problem})"
    if isinstance(problem, CannotStart):
        return TrainingFailed.__name__, str(problem)
    if isinstance(problem, Unhealthy):
        return NodeUnhealthy.__name__, f"its machine is unhealthy: {problem}"
    if isinstance(problem, MachineTrouble):
        return NodeLost.__name__, str(problem)
    return NodeLost.__name__, f"the agent failed: {type(problem).__name__}: {problem}"
