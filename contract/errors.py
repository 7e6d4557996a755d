"""Error names: the class names below are what machine, reports, logs and documentation call a failure."""

from __future__ import annotations


class JobError(Exception):
    """A failure that a person has to read; the message carries the numbers and says where to look."""


class InvalidRequest(JobError):
    """The request was refused before anything was created."""


class CapacityPending(JobError):
    """No rung of the ladder had capacity in this walk; the machine walks again."""


class CapacityUnavailable(JobError):
    """No capacity anywhere until the launch patience was over."""


class QuotaExceeded(JobError):
    """Every rung that is left is closed by a quota of the account."""


class Interrupted(JobError):
    """A spot interruption took nodes of the attempt."""


class NodeLost(JobError):
    """A node never reported, fell silent, or went away before its work was done."""


class Stalled(JobError):
    """Nodes live, progress does not."""


class TrainingFailed(JobError):
    """The user's code ended with an error, or could not be started."""


class DeadlineReached(JobError):
    """The job's hours are over."""


class BudgetExceeded(JobError):
    """The job's money is spent."""


class SyncIncomplete(JobError):
    """Something that a node says it committed is not in S3, whole."""


class PatienceOver(JobError):
    """A step met nothing but errors that are no answer of its own (a throttle, an outage) until its patience was over; the cause
    names the last one."""


class StillRunning(JobError):
    """Instances were told to terminate and have not begun to; the machine asks again."""


class BuildFailed(Exception):
    """An image did not get into every region. No error of a job: the Train machine never meets it."""


class StillBuilding(Exception):
    """A build of one of the platform's own images runs; the machine asks again."""


class StillTraining(Exception):
    """Trainings of a grid run that no child watches, or have not ended yet; the machine asks again."""


class GridFailed(Exception):
    """A grid ended with lines that have no record, or could not be ended whole."""


ASKED_AGAIN = (CapacityPending, StillRunning)
"""No verdicts: the machine asks again."""

NEW_ATTEMPT = (Interrupted, NodeLost, Stalled)
"""What a new attempt from the newest checkpoint can mend."""

ALL = tuple(
    sorted((error for error in JobError.__subclasses__()), key=lambda error: error.__name__),
)
BY_NAME: dict[str, type[JobError]] = {error.__name__: error for error in ALL}
