"""A node's report about itself: facts only, no decisions."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from contract.orders import Order

LAST_OUTPUT = "last lines of its output:"
"""Stands in a cause, behind a rank, before what its command wrote last."""

NOT_BEGUN = "could not begin its command"
"""What a cause says of the rank that ended a job before its command ran: its image, its code or its requirements are wrong."""


class Phase(str, Enum):
    """What the node is doing, in the order in which it happens."""

    RESTORING = "restoring"
    """Fetches the newest checkpoint of an earlier attempt."""
    PREPARING = "preparing"
    """Unpacks the code, installs requirements."""
    WAITING = "waiting"
    """Waits for the master's address."""
    CHECKING = "checking"
    """Waits for its peers, and measures with them the network between the nodes."""
    TRAINING = "training"
    SAVING = "saving"
    """The training process has ended; the last commits are being uploaded."""
    ENDED = "ended"
    """The last report of the node: it has `exit`, and nothing more will be committed."""

    @classmethod
    def of_later_version(cls) -> Phase:
        """No duration of it is judged."""
        return cls.TRAINING


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How the node's work ended."""

    code: int
    """The training process' exit code, 128 + n when signal n ended it; 1 when it could not be started."""
    error: str = ""
    """An error name of contract.errors; empty on success."""
    reason: str = ""
    """The reason for a person, with what to do."""
    tail: tuple[str, ...] = ()
    """The last lines of output."""
    ordered: bool = False
    """An order to stop came before the process ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What the trainer last wrote to PROGRESS_FILE."""

    step: int
    world_size: int = 0
    metric: float | None = None
    diverged: str = ""
    """What the metric is in the place of a finite number: one of metric_values.DIVERGED; empty for none, or a number."""
    import_s: float = 0.0
    """Seconds the trainer spent importing its framework, if it says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """The node's own item in the table of state, replaced every `report_every_s`. Its age is by AWS's clock: the node dates it by the
    answers of DynamoDB."""

    job: str
    attempt: int
    rank: int
    instance: str
    phase: Phase
    sent_at: float
    """The node's own clock, only for people: no decision uses it."""
    sequence: int = 0
    phase_s: float = 0.0
    """How long the node had been in this phase when it sent the report. Durations are by its monotonic clock, which no
    wrong date can move."""
    failed_s: float = 0.0
    """Seconds since its work ended, when it sent the report; 0 unless `outcome` is set."""
    ordered_s: float = 0.0
    """Seconds since `order` came, when it sent the report; 0 unless `order` is set."""
    progress: Progress | None = None
    checkpoint: str = ""
    """Key of the newest commit of this rank, in the bucket of the region."""
    checkpoint_step: int = -1
    layout: str = ""
    """The layout of a framework in which this rank's checkpoints were recognised; empty where the trainer names them, or none is known."""
    idle_s: float | None = None
    """Seconds without a sign of progress of the training, when the node sent the report: by its progress file once there is one
    (`progress`), else by its output, and by its checkpoints in either case. None where it does not train or is not measured."""
    closed_step: int = -1
    """Step of the newest set of this attempt that the node knows to be closed, 0 where it has no step; -1 before the first."""
    closed_s: float | None = None
    """Seconds since the node learnt that this set is closed, when it sent the report; None before the first, and from agents that do not
    measure it. Where the trainer tells no step, since its newest answer to a set."""
    commit_s: float = 0.0
    """Seconds that the newest commit of this rank took, from the look at its files until its set was answered; 0 before the first."""
    commit_bytes: int = 0
    """Bytes of the files of that commit, those that S3 had already among them."""
    artifacts: str = ""
    """Key of the newest artifacts commit of this rank."""
    restored_step: int = -1
    """Step of the restored checkpoint, -1 for a fresh start."""
    restored: str = ""
    """Which set was restored: `<bucket>/<attempt>/<number of the set>`, the same on every node of an attempt; empty for a fresh start."""
    order: Order | None = None
    """The order that the node obeys, wherever it came from, or its own, which it asks the attendant to give to every node."""
    outcome: Exit | None = None
    """How the work ended, if with an error or by an order; reported at once, while the last commits are being uploaded."""
    exit: Exit | None = None
    unhealthy: str = ""
    """What is wrong with the machine, by its own checks: before the training, or of the last minutes. Empty where nothing is known."""
    examines: bool = False
    """Whether the node looks, for some seconds, for a fault of its machine that may explain `outcome`."""
    note: str = ""
    """What the node does or what troubles it, in words for a person."""
    timeline: dict[str, float] = field(default_factory=dict)
    """Moments by the node's clock, by name: booted, prepared, addressed, started, first_step, ended."""
