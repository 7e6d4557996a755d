"""What can go wrong on a node, in the two ways that the control plane tells apart."""

from __future__ import annotations

import errno

from contract.errors import NodeLost, TrainingFailed

LARGER = "the disk is full: ask for a larger volume_gb"


class CannotStart(Exception):
    """The job's own doing: a new attempt would meet it again. Reported as TrainingFailed."""


class MachineTrouble(Exception):
    """The machine's or the network's doing: a new attempt may mend it. Reported as NodeLost."""


class Ordered(Exception):
    """An order came before the training process was started."""


def is_full(problem: BaseException) -> bool:
    """Whether the disk has no room left. Every attempt has a disk of that size, and fills it."""
    return isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT)


def told(problem: Exception) -> tuple[str, str]:
    """The error's name and the reason that a node reports. What nobody foresaw is the machine's or the network's doing (S3 that
    does not answer, a disk that breaks): a job that could have gone on must not end."""
    if is_full(problem):
        return TrainingFailed.__name__, f"{LARGER} ({problem})"
    if isinstance(problem, CannotStart):
        return TrainingFailed.__name__, str(problem)
    if isinstance(problem, MachineTrouble):
        return NodeLost.__name__, str(problem)
    return NodeLost.__name__, f"the agent failed: {type(problem).__name__}: {problem}"
