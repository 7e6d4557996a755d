"""One environment type per function: the stack writes it, the handler reads it, no name is spelt twice."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar, get_type_hints

from contract.codec import build
from contract.timing import Timing
from contract.timings import (
    AttendantTiming,
    ChildTiming,
    CleanupTiming,
    CollectTiming,
    DrainTiming,
    LauncherTiming,
    OwnImagesTiming,
    ReaperTiming,
    TerminatorTiming,
)

E = TypeVar("E", bound="Environment")
VARIABLE_PREFIX = "TRAINYARD_"


class Environment:
    """Fields become variables `TRAINYARD_<FIELD>`; everything but text travels as JSON."""

    __slots__ = ()

    def write(self) -> dict[str, str]:
        """For the stack: the variables of the function."""
        values: dict[str, Any] = asdict(self)  # type: ignore[call-overload]
        return {
            VARIABLE_PREFIX + name.upper(): value if isinstance(value, str) else json.dumps(value, sort_keys=True)
            for name, value in values.items()
        }

    @classmethod
    def read(cls: type[E], variables: Mapping[str, str] = os.environ) -> E:
        """For the handler. Raises KeyError naming the variable that is missing."""
        hints, values = get_type_hints(cls), {}
        for field in fields(cls):  # type: ignore[arg-type]
            name = VARIABLE_PREFIX + field.name.upper()
            text = variables[name]
            values[field.name] = text if hints[field.name] is str else build(hints[field.name], json.loads(text), name)
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a deployment allows its jobs."""

    max_nodes: int
    max_hours: float
    recoveries: int
    volume_gb: int
    """The default of a request, and at least what the image needs."""
    max_volume_gb: int
    instance_types: tuple[str, ...]
    """Patterns with `*`, as in `g5.*`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionEnvironment(Environment):
    deployment: str
    bucket: str
    log_group: str
    home_region: str
    regions: tuple[str, ...]
    """Where jobs may run."""
    images: dict[str, str]
    """Family (`x86_64`, `arm64`, `p3`) to an AMI id or an SSM parameter's name."""
    data_buckets: tuple[str, ...]
    instance_profile: str
    master_port: int
    """Where rank 0 of every job listens for the others."""
    agent: str
    """SHA-256 of the node agent."""
    agent_bucket: str
    agent_key: str
    """Where the deploy put its archive."""
    limits: Limits
    timing: Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherEnvironment(Environment):
    deployment: str
    bucket: str
    home_region: str
    instance_profile: str
    timing: LauncherTiming


@dataclass(frozen=True, slots=True, kw_only=True)
class AttendantEnvironment(Environment):
    deployment: str
    bucket: str
    timing: AttendantTiming


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactCheckEnvironment(Environment):
    deployment: str
    bucket: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminatorEnvironment(Environment):
    deployment: str
    bucket: str
    regions: tuple[str, ...]
    """Where jobs may run."""
    timing: TerminatorTiming


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionCheckEnvironment(Environment):
    """Of the function that rejects removing a region while its stack exists."""

    deployment: str
    bucket: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRolesEnvironment(Environment):
    """Of the function that makes the service-linked roles which an account lacks."""

    deployment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneLookupEnvironment(Environment):
    """Of the function that looks up a region's availability zones."""

    deployment: str
    region: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupEnvironment(Environment):
    """The terminator's, behind the queue of executions that ended by no step of their own."""

    deployment: str
    bucket: str
    regions: tuple[str, ...]
    queue: str
    """URL: the second cleanup is a message to the same queue, delayed."""
    timing: CleanupTiming


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaperEnvironment(Environment):
    deployment: str
    bucket: str
    home_region: str
    regions: tuple[str, ...]
    """All of the settings; to them come those where anything was ever launched (`keys.LAUNCHED_REGIONS`)."""
    instance_profile: str
    """ARN."""
    machine: str
    """ARN of the Train machine."""
    grid_machine: str
    """ARN of the Grid machine."""
    topic: str
    """ARN."""
    report_only: bool
    max_hours: float
    """The longest allowed job."""
    max_share: float
    """Of ours that were seen, how many a pass may end before their deadline, from 0 to 1 ..."""
    max_least: int
    """... and how many at least."""
    timing: ReaperTiming


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainEnvironment(Environment):
    deployment: str
    bucket: str
    regions: tuple[str, ...]
    """All of the settings."""
    machine: str
    """ARN of the Train machine."""
    grid_machine: str
    """ARN of the Grid machine."""
    keep_data: bool
    """Without it the deployment's buckets are emptied."""
    timing: DrainTiming


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageBuildEnvironment(Environment):
    """The Build machine's function, which checks a request and collects what came of it."""

    deployment: str
    bucket: str
    account: str
    suffix: str
    """The domain of the partition, `amazonaws.com` mostly."""
    home_region: str
    regions: tuple[str, ...]
    """Where images go: every region of the deployment, home first."""
    repositories: tuple[str, ...]
    """Short names, as in `images` for `<deployment>/images`."""
    data_buckets: tuple[str, ...]
    base_account: str
    """Of AWS's Deep Learning Containers in the home region; empty where it is not known."""
    copy_accounts: tuple[str, ...]
    """Further accounts whose private registries may be copied from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnImagesEnvironment(Environment):
    """Of the function with which a deploy waits for the platform's own images."""

    deployment: str
    bucket: str
    build_machine: str
    """ARN."""
    timing: OwnImagesTiming


LONGEST_TRAINING_H = 28 * 24.0
"""SageMaker ends every training then (StoppingCondition in its API reference)."""
SPOT_WAIT_H = 24.0
"""Beyond its max_hours, how long a managed spot training waits for capacity where nobody says, and at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridLimits:
    """What a deployment allows its grids."""

    max_lines: int
    max_concurrent: int
    """Lines that are watched at once; the others wait in the queue."""
    submissions_per_second: float
    """CreateTrainingJob, a region."""
    max_hours: float
    """The longest training."""
    max_instances: int
    """Of one training."""
    max_volume_gb: int
    instance_types: tuple[str, ...]
    """Patterns with `*`, as in `ml.g5.*`."""

    @property
    def longest_h(self) -> float:
        """Of any training: spot capacity may be waited for a day more. SageMaker ends every training after 28 days."""
        return min(self.max_hours + SPOT_WAIT_H, LONGEST_TRAINING_H)


@dataclass(frozen=True, slots=True, kw_only=True)
class GridDefaults:
    """What a line of a manifest takes where neither it nor the execution's input says; empty: it has to be said there."""

    image: str
    """As the manifest's column has it: `repository:tag` of the deployment, or a whole address."""
    instance_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GridEnvironment(Environment):
    """Of the grid's functions: Plan, Collect and what ends a grid."""

    deployment: str
    bucket: str
    account: str
    suffix: str
    """The domain of the partition, `amazonaws.com` mostly."""
    home_region: str
    regions: tuple[str, ...]
    """Where trainings may run: all of the settings, home first."""
    repositories: tuple[str, ...]
    """Short names."""
    data_buckets: tuple[str, ...]
    training_role: str
    """ARN."""
    machine: str
    """ARN of the Grid machine."""
    queue: str
    """Of Batch; its name."""
    child_image: str
    """Tag in the repository `names.PLATFORM`."""
    limits: GridLimits
    defaults: GridDefaults


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCollectEnvironment(GridEnvironment):
    """Of what collects the records of a grid, ends it, and tells people."""

    topic: str
    """ARN."""
    timing: CollectTiming


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCleanupEnvironment(GridCollectEnvironment):
    """The same behind the queue of grids whose execution ended by no step of its own."""

    messages: str
    """URL of that queue: what is not over yet is a message that comes back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnvironment(Environment):
    """Of a child: the first four are the job definition's, the others its array's. Batch adds AWS_BATCH_JOB_ARRAY_INDEX, which a
    plain job lacks, AWS_BATCH_JOB_ID and AWS_BATCH_JOB_ATTEMPT."""

    deployment: str
    bucket: str
    home_region: str
    timing: ChildTiming
    grid: str
    first: int
    """What is added to the array's index."""
    round: int
    """From 1; from 2 on the index counts in the round's own list of lines (`GridPrefix.work`)."""
