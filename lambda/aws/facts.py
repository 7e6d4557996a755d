"""AWS's answers as plain values for policies."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from contract.orders import Order
from contract.reports import Exit, NodeReport

ENDING = frozenset({"shutting-down", "terminated"})
"""States of an instance that no longer runs or costs anything, and never will again."""

GONE = "GONE"
"""The status of an execution that Step Functions does not know (any more)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One line of DescribeInstances."""

    id: str
    region: str
    state: str
    rank: int
    """The launch index."""
    address: str
    launched_at: float
    instance_type: str = ""
    zone: str = ""
    job: str = ""
    attempt: int = 0
    why: str = ""
    """The reason that EC2 gives for the last change of state."""
    taken_back: bool = False
    """Whether AWS ended it to have its spot capacity back: EC2's own word, which nothing on the machine can forge."""
    protected: bool = False
    """A person wants to keep it (tags.PROTECTED): nothing of the control plane ends it."""
    placement_group: str = ""
    """Its name, empty for none."""
    security_groups: tuple[str, ...] = ()
    """Empty once EC2 has taken the network of an ended instance."""
    profile: str = ""
    """ARN of its instance profile, empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """One line of DescribeCapacityReservations."""

    id: str
    region: str
    zone: str
    instance_type: str
    state: str
    total: int
    """Instances, used ones included."""
    owner: str
    """Account."""
    platform: str
    tenancy: str
    deployment: str
    """The deployment whose jobs may use it (its tag); empty for none."""
    block: bool
    """Whether it is a Capacity Block."""
    interruptible: bool
    begins_at: float
    """UTC epoch seconds; 0 where EC2 does not say."""
    ends_at: float | None
    """When EC2 begins to end its nodes, UTC epoch seconds; None for never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What Step Functions says of an execution."""

    RUNS: ClassVar[frozenset[str]] = frozenset({"RUNNING", "PENDING_REDRIVE"})

    name: str
    """RUNNING, PENDING_REDRIVE, SUCCEEDED, FAILED, TIMED_OUT, ABORTED, or GONE."""
    started_at: float | None = None
    """UTC epoch seconds; None where it is GONE."""
    ended_at: float | None = None
    """UTC epoch seconds."""
    error: str = ""
    cause: str = ""

    @property
    def runs(self) -> bool:
        return self.name in self.RUNS


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A network card of an instance type."""

    index: int
    most: int
    """How many interfaces it takes."""
    types: tuple[str, ...]
    """Types of interfaces that it takes, in EC2's words; empty where EC2 does not say."""
    gbps: float = 0.0
    """Gbit/s that it always gives (EC2's baseline); 0 where EC2 does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerators:
    """GPUs or Neuron devices of one kind in an instance type."""

    name: str
    """As EC2 calls them: H100, Trainium2."""
    count: int
    """Whole devices; 0 where a machine has a part of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """What Admit has to know of a type."""

    name: str
    architectures: tuple[str, ...]
    cluster: bool
    """Cluster placement groups take it."""
    vcpus: int = 0
    accelerators: tuple[Accelerators, ...] = ()
    neuron: bool = False
    """Its accelerators are Trainium or Inferentia, which need AWS's Neuron driver."""
    gpus: int = 0
    """Whole NVIDIA GPUs."""
    neurons: int = 0
    """Neuron devices, as far as EC2 tells their number."""
    neuron_cores: int = 0
    """Cores of all its Neuron devices; a training may run one process on each. 0 where EC2 does not say."""
    cards: tuple[Card, ...] = ()
    efas: int = 0
    """How many EFA interfaces it takes; 0 for a type without EFA."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Object:
    """An S3 object's head."""

    bucket: str
    key: str
    size: int
    version: str = ""
    etag: str = ""
    archived: bool = False
    """Its storage class requires a restore before it can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The report of an instance, and its age in seconds by AWS's clock."""

    instance: str
    report: NodeReport | None
    """None where it cannot be read."""
    age_s: float
    """Below zero where the node says that it wrote the report in the future."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A node's report, and how long ago by AWS's clock the node wrote it."""

    report: NodeReport
    age_s: float

    @property
    def end(self) -> Exit | None:
        """How its work ended; its last commits may still be on their way."""
        return self.report.exit or self.report.outcome

    @property
    def phase_s(self) -> float:
        """How long it has been in its phase."""
        return self.report.phase_s + self.age_s

    @property
    def failed_s(self) -> float:
        """How long ago its work ended, by AWS's clock and a duration of the node's."""
        return self.report.failed_s + self.age_s

    @property
    def ordered_s(self) -> float:
        """How long ago its order came, where its report has one."""
        return self.report.ordered_s + self.age_s

    @property
    def closed_s(self) -> float | None:
        """How long ago it learnt that its newest set is closed; None where it does not say."""
        return None if self.report.closed_s is None else self.report.closed_s + self.age_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A pass of the attendant over all jobs."""

    age_s: float
    gaps_s: tuple[float, ...]
    """Seconds between the passes before it, the newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An attempt's order, and its age in seconds."""

    order: Order
    age_s: float


class Sort(str, Enum):
    """Sorts of things that a deployment may leave behind."""

    INSTANCE = "instance"
    VOLUME = "volume"
    SPOT_REQUEST = "spot request"
    INTERFACE = "network interface"
    TRAINING = "training"
    """Of SageMaker."""
    JOB = "Batch job"
    """Of a grid's children: one, or an array of them."""
    LINE = "execution of a line"
    """Of a grid, on clusters of our own."""
    ROUND = "execution of a round"
    """Of a search: a grid."""
    MPI_JOB = "MPIJob"
    """Of a grid's line, on Kubernetes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belonging:
    """A resource that may belong to a deployment, with only the facts that judge and name it: there may be 100,000."""

    id: str
    sort: Sort
    region: str
    state: str
    born_at: float | None
    """UTC epoch seconds by AWS's clock; None where AWS does not say, as for every network interface."""
    deployment: str | None
    """Value of the deployment's tag, None where there is no such tag."""
    profile: str = ""
    """ARN of the instance profile."""
    protected: bool = False
    """A person wants to keep it (tags.PROTECTED)."""
    execution: str = ""
    deadline: str = ""
    """The tags' values, unchecked: people may have changed them."""
    job: str = ""
    owner: str = ""
    instance_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A time by AWS's clock in UTC epoch seconds, between `earliest` and `latest`; the two are equal where AWS gave it."""

    earliest: float
    latest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """What a container image says of itself for one kind of processor."""

    architecture: str
    """As registries call it: `amd64`, `arm64`."""
    size: int
    """Bytes that a pull fetches."""
    entry_point: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    """The words that follow the entry point, or run where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredImage:
    """A container image in a registry."""

    digest: str
    platforms: tuple[Platform, ...] = ()
