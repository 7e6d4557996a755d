"""One environment type per function: the stack writes it, the handler reads it, no name is spelt twice."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from typing import Any, TypeVar

from contract.catalogue import CatalogueAccess
from contract.codec import build, default_of, read_hints
from contract.limits import Limits
from contract.timing import Timing
from contract.timings import (
    AttendantTiming,
    ChildTiming,
    CleanupTiming,
    CollectTiming,
    DrainTiming,
    LauncherTiming,
    ReaperTiming,
    TerminatorTiming,
)

E = TypeVar("E", bound="Environment")
VARIABLE_PREFIX = "TRAINYARD_"


class Environment:
    """Each field becomes a variable `TRAINYARD_<FIELD>`; values other than text are written as JSON. A field that has its default
    becomes none."""

    __slots__ = ()

    def write(self) -> dict[str, str]:
        """Returns the function's variables; the stack calls this."""
        hints, values = read_hints(type(self)), _without_defaults(type(self), asdict(self))  # type: ignore[call-overload]
        return {
            VARIABLE_PREFIX + name.upper(): value
            if isinstance(value, str)
            else json.dumps(_without_defaults(hints[name], value), sort_keys=True, separators=(",", ":"))
            for name, value in values.items()
        }

    @classmethod
    def read(cls: type[E], variables: Mapping[str, str] = os.environ) -> E:
        """Reads the function's variables; the handler calls this. Raises KeyError that names a missing variable."""
        hints, values = read_hints(cls), {}
        for one in fields(cls):  # type: ignore[arg-type]
            name = VARIABLE_PREFIX + one.name.upper()
            if name not in variables and default_of(one) is not MISSING:
                continue
            text = variables[name]
            values[one.name] = text if hints[one.name] is str else build(hints[one.name], json.loads(text), name)
        return cls(**values)


def _without_defaults(kind: Any, values: Any) -> Any:
    """The values of a dataclass without those that its reader, which knows it as a `kind`, has by itself: all variables of a function
    together have 4 KB."""
    if not is_dataclass(kind):
        return values
    defaults = {one.name: default_of(one) for one in fields(kind)}
    return {name: value for name, value in values.items() if name not in defaults or value != defaults[name]}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentEnvironment(Environment):
    """What functions are told that use the home bucket and no state."""

    deployment: str
    bucket: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEnvironment(Environment):
    """What functions are told that read or write state, and nothing that people read."""

    deployment: str
    table: str
    """Name of the table of state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsEnvironment(StateEnvironment):
    """What functions are told that also read or write what people read of jobs and grids."""

    bucket: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChecksEnvironment(JobsEnvironment):
    """What has to be known to say what stands against a job."""

    home_region: str
    regions: tuple[str, ...]
    """Where jobs may run."""
    images: dict[str, str]
    """Family (`x86_64`, `arm64`, `p3`, `neuron`) to an AMI id or an SSM parameter's name."""
    machine_images: dict[str, str]
    """Name that a request may use to an AMI id or an SSM parameter's name."""
    image_owners: tuple[str, ...]
    """Whose images the launcher may use beside AWS's and the account's own: account ids, or `aws-marketplace`."""
    repositories: tuple[str, ...]
    base_accounts: dict[str, str]
    """Region to the account of AWS's Deep Learning Containers there, empty for none; that of all other regions under the empty name."""
    copy_accounts: tuple[str, ...]
    git_hosts: dict[str, str]
    """Host from which code may be fetched to the name of the secret with its token, empty for none."""
    data_buckets: tuple[str, ...]
    job_roles: tuple[str, ...]
    """Names of the roles that requests may name for their training; the attendant knows their ARNs."""
    instance_profile: str
    """ARN."""
    limits: Limits
    timing: Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionEnvironment(JobChecksEnvironment):
    log_group: str
    attendant: str
    """Name of the function that begins sessions."""
    master_port: int
    """The port on which rank 0 of every job listens for the other ranks."""
    agent: str
    """SHA-256 of the node agent."""
    agent_bucket: str
    agent_key: str
    """The key at which a deploy stores the agent's archive."""
    rules: str = ""
    """Name of the file in the archive that has the rules of requests (`RequestRules`); empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherEnvironment(JobsEnvironment):
    node_role: str
    """Id of the nodes' role (`AROA...`): the first half of a node's `aws:userid`."""
    home_region: str
    instance_profile: str
    timing: LauncherTiming
    tags: dict[str, str] = field(default_factory=dict)
    """The settings' own tags, for everything that a launch makes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointLimits:
    """When people are told about the checkpoints of a job that trains. Both are in intervals: its own checkpoint_minutes."""

    oldest: float
    longest_commit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttendantEnvironment(StateEnvironment):
    node_role: str
    """Id of the nodes' role (`AROA...`): the first half of a node's `aws:userid`."""
    job_role: str
    """ARN of the role whose sessions nodes get for their job."""
    training_roles: dict[str, str]
    """Name, as requests call it, to the ARN of a role whose sessions trainings get."""
    checkpoints: CheckpointLimits
    topic: str
    """ARN."""
    timing: AttendantTiming


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactCheckEnvironment(JobsEnvironment):
    """Environment of the function that checks what nodes committed."""

    node_role: str
    """Id of the nodes' role (`AROA...`): the first half of a node's `aws:userid`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndingEnvironment(JobsEnvironment):
    """What functions are told that end a job's instances."""

    instance_profile: str
    """ARN of the nodes' instance profile: what has another one, or none, is not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminatorEnvironment(EndingEnvironment):
    regions: tuple[str, ...]
    """Where jobs may run."""
    timing: TerminatorTiming


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionCheckEnvironment(StateEnvironment):
    """Environment of the function that rejects removing a region while its stack exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRolesEnvironment(Environment):
    """Environment of the function that creates the service-linked roles which an account lacks."""

    deployment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneLookupEnvironment(Environment):
    """Environment of the function that looks up a region's availability zones."""

    deployment: str
    region: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultGroupEnvironment(Environment):
    """Environment of the function that closes the default security group of a region's network."""

    deployment: str
    region: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupEnvironment(EndingEnvironment):
    """Environment of the cleanup, which reads the queue of executions that failed, timed out or were aborted."""

    regions: tuple[str, ...]
    machine: str
    """ARN of the Train machine."""
    queue: str
    """URL of the queue; the second cleanup is a delayed message to this same queue, and so is what the clock finds."""
    timing: CleanupTiming


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaperEnvironment(StateEnvironment):
    home_region: str
    regions: tuple[str, ...]
    """All regions of the settings; the reaper also reads every region in which anything was ever launched (`items.REGIONS`)."""
    instance_profile: str
    """ARN."""
    machine: str
    """ARN of the Train machine."""
    grid_machine: str
    """ARN of the Grid machine."""
    search_machine: str
    """ARN of the Search machine."""
    topic: str
    """ARN."""
    report_only: bool
    max_hours: float
    """Hours of the longest allowed job."""
    max_share: float
    """The largest share of our instances seen, from 0 to 1, that one pass may end before their deadline."""
    max_least: int
    """The number of instances that one pass may end before their deadline in any case."""
    timing: ReaperTiming
    runbook: str = ""
    """Address of the runbook; empty for the file of the repository."""
    cluster_function: str = ""
    """Name of the function that speaks with the cluster of Kubernetes; empty without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainEnvironment(EndingEnvironment):
    regions: tuple[str, ...]
    """All regions of the settings."""
    machine: str
    """ARN of the Train machine."""
    grid_machine: str
    """ARN of the Grid machine."""
    search_machine: str
    """ARN of the Search machine."""
    keep_data: bool
    """When false, the drain empties the deployment's buckets."""
    timing: DrainTiming
    cluster_function: str = ""
    """As in ReaperEnvironment."""


LONGEST_TRAINING_H = 28 * 24.0
"""SageMaker ends every training after this time (StoppingCondition in its API reference)."""
SPOT_WAIT_H = 24.0
"""How long, beyond its max_hours, a managed spot training may wait for capacity: the default and the maximum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridLimits:
    """What a deployment allows its grids."""

    max_lines: int
    max_concurrent: int
    """The most lines that children watch at once; the others wait in the queue."""
    submissions_per_second: float
    """CreateTrainingJob, a region."""
    max_hours: float
    """The most hours of a training."""
    max_instances: int
    """Of one training."""
    max_volume_gb: int
    instance_types: tuple[str, ...]
    """The instance types that lines may name, as patterns with `*` such as `ml.g5.*`."""

    @property
    def longest_h(self) -> float:
        """Returns the hours of the longest training, with one day for spot capacity. SageMaker ends every training after 28 days."""
        return min(self.max_hours + SPOT_WAIT_H, LONGEST_TRAINING_H)


@dataclass(frozen=True, slots=True, kw_only=True)
class GridDefaults:
    """Values for a line of a manifest where neither the line nor the execution's input sets them; an empty one must be set there."""

    image: str
    """As the manifest's column has it: `repository:tag` of the deployment, or a whole address."""
    instance_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCluster:
    """The cluster of EKS in the home region."""

    name: str
    most_nodes: int
    """Of all lines together."""
    port: int = 29500
    """At which rank 0 of a line listens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridEnvironment(JobsEnvironment):
    """Environment of the grid's functions: Plan, Collect and the function that ends a grid."""

    account: str
    suffix: str
    """The domain of the AWS partition, usually `amazonaws.com`."""
    home_region: str
    regions: tuple[str, ...]
    """Where trainings may run: all of the settings, home first."""
    repositories: tuple[str, ...]
    """Short names."""
    base_accounts: dict[str, str]
    """Region to the account of AWS's Deep Learning Containers, as in JobChecksEnvironment."""
    data_buckets: tuple[str, ...]
    training_role: str
    """ARN."""
    machine: str
    """ARN of the Grid machine."""
    queue: str
    """Name of the Batch job queue."""
    child_image: str
    """Tag of the child's image in the repository `names.PLATFORM`."""
    limits: GridLimits
    job_limits: Limits
    """Of jobs, for lines that run on clusters of our own."""
    train_machine: str
    """ARN of the Train machine."""
    defaults: GridDefaults
    output_key: str = ""
    """Alias of the key, the same in every region, under which SageMaker writes what trainings make, unless their lines name another;
    empty for SageMaker's own choice."""
    tags: dict[str, str] = field(default_factory=dict)
    """The settings' own tags, for every training; a line may give a key another value."""
    catalogue: CatalogueAccess | None = None
    """As whom queries are run; None in a deployment without a catalogue."""
    kubernetes: LineCluster | None = None
    """Where lines with the backend kubernetes run; None in a deployment without a cluster."""
    rules: str = ""
    """Of the functions that read lines, as in AdmissionEnvironment."""
    jobs: str = ""
    """Name of the file in the archive that has the settings of jobs (`JobSettings`), by which functions that read lines judge those on
    clusters of our own; empty for the functions that read none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCollectEnvironment(GridEnvironment):
    """Environment of the function that collects a grid's records, ends the grid and notifies people."""

    topic: str
    """ARN."""
    timing: CollectTiming


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCleanupEnvironment(GridCollectEnvironment):
    """Environment of the grid's cleanup, which reads the queue of grids whose execution failed, timed out or was aborted."""

    messages: str
    """URL of that queue; a grid that has not ended yet comes back as a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnvironment(DeploymentEnvironment):
    """Environment of a child: the job definition sets the first four variables, its array the others. Batch adds
    AWS_BATCH_JOB_ID, AWS_BATCH_JOB_ATTEMPT and, for an array, AWS_BATCH_JOB_ARRAY_INDEX."""

    home_region: str
    timing: ChildTiming
    grid: str
    first: int
    """The offset that is added to the array's index."""
    round: int
    """The round, from 1; from round 2 on the index counts in that round's own list of lines (`GridPrefix.work`)."""
