"""Error names: the class names below are what machine, reports, logs and documentation call a failure."""

from __future__ import annotations


class JobError(Exception):
    """A failure that a person has to read; the message carries the numbers and says where to look."""


class InvalidRequest(JobError):
    """The request was refused before anything was created."""


class CapacityPending(JobError):
    """No rung of the ladder had capacity in this walk; the machine retries with another walk."""


class CapacityUnavailable(JobError):
    """No rung had capacity until the launch patience was over, nor while the job was allowed to wait."""


class CapacityAwaited(JobError):
    """No rung had capacity until the launch patience was over, and the job may wait; the machine goes on with "Wait for capacity"."""


class QuotaExceeded(JobError):
    """A quota of the account closes every remaining rung."""


class LaunchIncomplete(JobError):
    """A place had capacity for nodes of some roles and not for those of others: what was launched is ended, and another attempt begins."""


class Interrupted(JobError):
    """A spot interruption ended nodes of the attempt."""


class NodeLost(JobError):
    """A node never reported, fell silent, or disappeared before its work was done."""


class NodeUnhealthy(JobError):
    """A node's machine is at fault: its health check says so, or its kernel and its GPUs do beside an error of the command."""


class Stalled(JobError):
    """Nodes are alive but make no progress."""


class TrainingFailed(JobError):
    """The user's code ended with an error, or could not be started."""


class RetriedExit(JobError):
    """The user's code ended with an exit code that its request retries. The attendant tells it the machine alone, which calls it
    TrainingFailed everywhere else."""


class RoleRefused(JobError):
    """STS denies a session of the role that the request names as `job_role`, or of the deployment's own role of jobs."""


class DeadlineReached(JobError):
    """The job has used up its hours."""


class BudgetExceeded(JobError):
    """The job has used up its money."""


class SyncIncomplete(JobError):
    """S3 lacks a file that a node reported as committed, or has only a part of it."""


class PatienceOver(JobError):
    """A step met only errors that decide nothing (a throttle, an outage) until its patience was over; the cause names the
    last one."""


class StillRunning(JobError):
    """Instances were asked to terminate and have not begun to shut down; the machine asks again."""


class BuildFailed(Exception):
    """An image did not reach every region. Only the Build machine raises it, never the Train machine."""


class HostAway(Exception):
    """The git host of a build's context does not answer; the Build machine asks again."""


class StillBuilding(Exception):
    """A build of one of the platform's own images runs; the machine asks again."""


class StillTraining(Exception):
    """Some trainings of a grid have no child that watches them, or have not ended yet, or a search's grid runs; the machine asks again."""


class DatabaseAway(Exception):
    """The catalogue's database sleeps or is away for longer than it was waited for, or an answer was lost: whether the statement ran is
    unknown. The machine plans the grid again."""

    def __init__(self, text: str, state: str = "") -> None:
        super().__init__(f"{text} (SQLSTATE {state})" if state else text)
        self.text = text
        self.state = state
        """SQLSTATE where PostgreSQL itself ended the session, as in 57P01; a statement may do that too."""


class GridFailed(Exception):
    """A grid ended with lines that lack a record, or could not be ended completely."""


class SearchFailed(Exception):
    """A search could not go on: a round's grid did not end by itself, or all trials of a round failed."""


ASKED_AGAIN = (CapacityPending, StillRunning)
"""Errors that mean "not yet": the machine asks again."""

NEW_ATTEMPT = (Interrupted, LaunchIncomplete, NodeLost, NodeUnhealthy, Stalled)
"""Errors after which a new attempt from the newest checkpoint may succeed."""

ALL = tuple(
    sorted((error for error in JobError.__subclasses__()), key=lambda error: error.__name__),
)
BY_NAME: dict[str, type[JobError]] = {error.__name__: error for error in ALL}
