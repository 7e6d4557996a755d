"""`job.json`: the job that Admit made of a request; every attempt runs exactly this."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from contract.codec import UNWRITTEN
from contract.containers import Container
from contract.errors import BudgetExceeded, DeadlineReached
from contract.events import Event
from contract.fabric import PLAIN, Interface, InterfaceType
from contract.grid import GridLine
from contract.health import NETWORK_SHARE, HealthCheck
from contract.mounts import JobMount
from contract.places import Place
from contract.roles import Role
from contract.timing import Timing
from contract.volumes import LEAST_IOPS, LEAST_THROUGHPUT
from contract.workbench import FOLDER as BENCH
from contract.workbench import Workbench


class Market(str, Enum):
    """How capacity is bought."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    RESERVATION = "reservation"
    """Of an On-Demand Capacity Reservation."""
    CAPACITY_BLOCK = "capacity-block"
    INTERRUPTIBLE = "interruptible-capacity-reservation"
    """Of a reservation whose owner may ask for its capacity back."""

    @classmethod
    def of_later_version(cls) -> Market:
        """It costs most, so no money is forgotten; nothing of it may be taken back unseen."""
        return cls.ON_DEMAND


class Scope(str, Enum):
    """Whose files in CHECKPOINT_DIR are the checkpoint."""

    RANK0 = "rank0"
    """Those of rank 0 alone; what other ranks write there is not committed."""
    SHARDS = "shards"
    """Every rank has a part; a set without the part of each is not closed. Rank 0 may name the checkpoint for all."""
    AUTO = "auto"
    """Those of every rank that has any."""

    @classmethod
    def of_later_version(cls) -> Scope:
        """The files of every rank that has any."""
        return cls.AUTO


class CheckpointLayout(str, Enum):
    """How the training lays out its checkpoints, where it does not name them in PROGRESS_FILE."""

    AUTO = "auto"
    """As one of the others, if the files show which."""
    NONE = "none"
    """As none of them, whatever the files look like."""
    TRANSFORMERS = "transformers"
    """The Trainer of transformers, and what derives from it."""
    ACCELERATE = "accelerate"
    LIGHTNING = "lightning"
    DCP = "dcp"
    """torch.distributed.checkpoint, FSDP's sharded checkpoints among them."""
    DEEPSPEED = "deepspeed"
    MEGATRON = "megatron"
    ORBAX = "orbax"
    KERAS = "keras"
    TENSORFLOW = "tensorflow"
    SAFETENSORS = "safetensors"
    """Models alone; only where the request says so."""

    @classmethod
    def of_later_version(cls) -> CheckpointLayout:
        """The files show which."""
        return cls.AUTO


class Selection(str, Enum):
    """Which files of a checkpoint a node gets back."""

    ALL = "all"
    """Those of every rank."""
    OWN = "own"
    """Those of its own rank, and those of rank 0, which are everybody's."""

    @classmethod
    def of_later_version(cls) -> Selection:
        """A node gets too much rather than too little."""
        return cls.ALL


class Launcher(str, Enum):
    """What starts the processes of the training."""

    NONE = "none"
    """The node: the command itself, once on each."""
    TORCHRUN = "torchrun"
    MPI = "mpi"
    """mpirun on rank 0, for all nodes."""

    @classmethod
    def of_later_version(cls) -> Launcher:
        """Nodes run the agent that knows the word; to all others it makes no difference."""
        return cls.NONE


class Reaction(str, Enum):
    """What follows when a training makes no progress."""

    NOTIFY = "notify"
    """People are told; the training goes on."""
    RESTART = "restart"
    """A new attempt from the newest checkpoint, as after a loss."""
    STOP = "stop"
    """The job ends, after a last checkpoint."""

    @classmethod
    def of_later_version(cls) -> Reaction:
        """It ends nothing."""
        return cls.NOTIFY


@dataclass(frozen=True, slots=True, kw_only=True)
class NoProgress:
    """When a training that makes no progress counts as stalled, and what then follows."""

    minutes: float
    then: Reaction


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPlan:
    """How often the job begins again after errors of its own command."""

    times: int = 0
    exit_codes: tuple[int, ...] = ()
    """Those of the command after which it does; empty for all."""

    def wants(self, code: int) -> bool:
        """Whether the job is to begin again once its command has ended with `code`."""
        return self.times > 0 and code != 0 and (not self.exit_codes or code in self.exit_codes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ami:
    """A machine image, pinned."""

    id: str
    root_device: str
    snapshot_gb: int
    owner: str = ""
    """As EC2 calls it: `amazon`, `aws-marketplace`, or the id of an account."""
    further_devices: tuple[str, ...] = ()
    """Names of the devices, beside the root, for which the image has a snapshot."""
    architecture: str = ""
    """`x86_64` or `arm64`; empty where EC2 does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One thing to try: all nodes in one zone, of one type and from one market unless the job has roles."""

    region: str
    zone: str
    instance_type: str
    market: Market
    image: Ami
    cluster: bool
    """Whether the type supports cluster placement groups and the job has more than one node."""
    usd: float | None = None
    """An hour of one node; None where that was not known, or nothing was chosen by it."""
    priced_at: float = 0.0
    """When that was the price, UTC epoch seconds; 0 for the job's admission."""
    most_usd: float | None = None
    """What an hour of one node and its root volume costs at most, on-demand; None where that was not known."""

    reservation: str = ""
    """Id of the Capacity Reservation or Capacity Block; empty for none."""
    begins_at: float = 0.0
    """From when on the reservation can be used, UTC epoch seconds."""
    ends_at: float | None = None
    """When AWS begins to end the nodes of a Capacity Block, UTC epoch seconds; None for never."""
    shapes: tuple[LaunchShape, ...] = field(default=(), metadata=UNWRITTEN)
    """Of a job with roles, the scarcest first: then `instance_type` has the types of all for people, `market` and `image` are those of the
    first shape, and `usd` and `most_usd` the mean of all nodes. Empty where all nodes are alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchShape:
    """Nodes of consecutive ranks that one request of RunInstances launches."""

    rung: Rung
    first_rank: int
    nodes: int
    role: str = ""
    """Names of their roles; empty in a job without roles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """The archive that nodes unpack: a copy under the job's own prefix of the home bucket."""

    key: str
    source: str
    """The address (`s3://...`, or `https://...` of a git repository) from which it came, for the record."""
    source_version: str = ""
    """The version of the object, or the commit."""
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCheckpoint:
    """A closed set of another job, from which a job begins."""

    job: str
    region: str
    bucket: str
    attempt: int
    number: int
    step: int
    """-1 where its trainer told none."""
    unread: tuple[str, ...] = ()
    """Regions in which the job may have run, and whose buckets Admit was not allowed to read: a newer set may be there."""


SAME_START_S = 60.0
"""Times of the same start may differ by less than this, because services write different numbers of digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The admitted job."""

    id: str
    deployment: str
    execution: str
    """ARN of the Step Functions execution that owns the job."""
    owner: str
    admitted_at: float
    """When the execution began, UTC epoch seconds."""
    deadline: int
    """UTC epoch seconds by which the job must end."""
    command: tuple[str, ...]
    """Empty where the entry point of the job's image runs."""
    code: Code | None
    """None where the image has all that runs."""
    nodes: int
    volume_gb: int
    checkpoint_minutes: float
    max_hours: float
    recoveries: int
    """How many new attempts in a row the errors of `errors.NEW_ATTEMPT` may start. A newer checkpoint resets the count."""
    home_bucket: str
    home_region: str
    log_group: str
    ladder: tuple[Rung, ...]
    places: dict[str, Place]
    timing: Timing
    environment: dict[str, str]
    secrets: dict[str, str]
    """Environment name to Secrets Manager ARN. The node reads the value; no document contains it."""
    agent: str = ""
    """SHA-256 of the node agent that every attempt runs (`keys.agent`); empty in older jobs, which name none."""
    data: tuple[str, ...] = ()
    master_port: int = 29500
    checkpoint_scope: Scope = Scope.AUTO
    checkpoint_layout: CheckpointLayout = CheckpointLayout.AUTO
    checkpoint_restore: Selection = Selection.ALL
    job_role: str = ""
    """Name, in the setting `job_roles`, of the role whose rights the training gets; empty where the request names none."""
    volume_iops: int = LEAST_IOPS
    """IOPS of each node's disk, as many as one of `volume_gb` takes."""
    volume_throughput: int = LEAST_THROUGHPUT
    """MiB/s of each node's disk, as many as one with `volume_iops` takes."""
    max_wait_hours: float = 0.0
    """How long all attempts together may wait for capacity, beyond the launch patience; 0 for not at all."""
    waited_s: float = 0.0
    """How long the job has waited for capacity: its deadline is so much later than the one it was admitted with. 0 in job.json."""
    interfaces: dict[str, tuple[Interface, ...]] = field(default_factory=dict)
    """Instance type to the interfaces of a node, for each type whose nodes get EFA. A type has the same network cards everywhere."""
    max_cost_usd: float | None = None
    """What all attempts together may cost (`contract.money`); None for no cap."""
    money_ends: bool = False
    """Whether the deadline is when the money is used up, and not the end of the hours. False in job.json."""
    retries: RetryPlan = field(default_factory=RetryPlan)
    stall: NoProgress | None = None
    """None where the request does not ask for it: a training may then stand still until its hours are over."""
    resume: SourceCheckpoint | None = None
    """What the job begins with before it has a checkpoint of its own; None for nothing."""
    leave_on_rebalance: bool = False
    """Whether the nodes leave when EC2 recommends it, once the attempt has committed a checkpoint."""
    notify: tuple[Event, ...] = ()
    """Of what people are told."""
    health: HealthCheck = HealthCheck.OFF
    gpus: dict[str, int] = field(default_factory=dict)
    """Instance type to how many NVIDIA GPUs a machine of it has, as EC2 says, for each type of the ladder that has whole ones."""
    neurons: dict[str, int] = field(default_factory=dict)
    """The same for Neuron devices."""
    network: dict[str, float] = field(default_factory=dict)
    """Instance type to Gbit/s that the network cards of a node always give together, as EC2 says; only for a deep health check."""
    uplinks: dict[str, float] = field(default_factory=dict)
    """Instance type to Gbit/s that the network card with a node's address always gives, as EC2 says: by it nodes reach S3."""
    network_share: float = NETWORK_SHARE
    """The least part of `network` which the check wants of an all-reduce."""
    container: Container | None = None
    """None where the training runs on the machine's own image."""
    mounted: tuple[JobMount, ...] = ()
    """File systems that every node has."""
    launcher: Launcher = field(default=Launcher.NONE, metadata=UNWRITTEN)
    processes_per_node: int = field(default=0, metadata=UNWRITTEN)
    """Processes that the launcher starts on each node; 0 for one for each accelerator of its type, or one where that has none."""
    grid_line: GridLine | None = field(default=None, metadata=UNWRITTEN)
    """Names the line of a grid whose job this is; None for a job that a person started."""
    workbench: Workbench | None = field(default=None, metadata=UNWRITTEN)
    """What the job's JupyterLab does, whose command Admit wrote; None for every other job."""
    roles: tuple[Role, ...] = field(default=(), metadata=UNWRITTEN)
    """In the order of ranks; empty where all nodes run the same. With roles `command` is empty and `container` None (`shapes.seen_by`)."""
    tags: dict[str, str] = field(default_factory=dict, metadata=UNWRITTEN)
    """The person's own, on everything that a launch makes; never ours."""
    preset: str = field(default="", metadata=UNWRITTEN)
    """Name of the preset that filled the request; empty for none."""
    preset_gave: dict[str, Any] = field(default_factory=dict, metadata=UNWRITTEN)
    """Fields of the request that are as the preset has them."""
    left_out: tuple[str, ...] = ()
    """What the ladder lacks although the request allows it: regions with the reason, and how many dearer places."""

    def interfaces_of(self, instance_type: str) -> tuple[Interface, ...]:
        """Returns the interfaces of a node of this type: a plain one, unless the job asks for EFA there."""
        return self.interfaces.get(instance_type, PLAIN)

    def efas_of(self, instance_type: str) -> int:
        """Returns how many EFA devices a node of this type is launched with."""
        return sum(one.type is not InterfaceType.PLAIN for one in self.interfaces_of(instance_type))

    def processes_of(self, instance_type: str) -> int:
        """Returns how many processes the launcher starts on a node of this type."""
        return self.processes_per_node or self.gpus.get(instance_type) or self.neurons.get(instance_type) or 1

    def belongs_to(self, execution: str, started_at: float | None) -> bool:
        """Whether the job belongs to the execution with that ARN and start. 90 days after an execution's end, another one may have its
        name, and so its ARN. A redriven execution keeps its start. Where the start is unknown, the ARN decides."""
        same_start = started_at is None or abs(started_at - self.admitted_at) < SAME_START_S
        return self.execution == execution and same_start

    @property
    def benches_on_a_mount(self) -> bool:
        """Whether the work of a workbench lies on a file system, and not in the job's checkpoint."""
        return self.workbench is not None and any(one.at == BENCH for one in self.mounted)

    @property
    def late_error(self) -> str:
        """Name of the error of a job that runs until its deadline."""
        return (BudgetExceeded if self.money_ends else DeadlineReached).__name__

    @property
    def stop_at(self) -> float:
        """UTC epoch seconds when the job is told to write a last checkpoint; a short job keeps half of its time."""
        hours_s = self.deadline - self.waited_s - self.admitted_at
        return self.deadline - min(self.timing.deadline_notice_s, hours_s / 2)

    def extended(self, waited_s: float, rung: Rung | None = None, *, paid_until: float = math.inf) -> Job:
        """The admitted job once it has waited so long for capacity: the hours of a job do not count while it waits. On a `rung` whose
        nodes AWS ends, the job ends before. `paid_until`: when its money is used up, UTC epoch seconds."""
        deadline = self.deadline + max(0, math.floor(waited_s))
        if rung is not None and rung.ends_at is not None:
            deadline = min(deadline, math.floor(rung.ends_at))
        if paid_until < deadline:
            return replace(self.due(math.floor(paid_until)), money_ends=True)
        return self.due(deadline)

    def due(self, deadline: int) -> Job:
        """The admitted job with the deadline of a launch."""
        return replace(self, deadline=deadline, waited_s=float(max(0, deadline - self.deadline)))
