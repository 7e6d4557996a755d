"""The request that a person pastes into the console: its fields, each with its limits, its default and what it may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, field_validator
from pydantic.config import JsonDict

from contract.events import Event
from contract.health import HealthCheck
from contract.jobs import CheckpointLayout, Reaction, Scope, Selection
from contract.mounts import MOST as MOST_MOUNTS
from contract.tag_forms import MOST_OF_A_REQUEST
from job_requests import values
from job_requests.grid_line import GRID_LINE_MAY_BE, GridLineField
from job_requests.mount_fields import MOUNT_MAY_BE, MOUNTS_MAY_BE, MountField
from job_requests.program import NEEDS_LAUNCHER, ProgramFields
from job_requests.role_field import MOST_ROLES, MOST_TYPES, ROLE_MAY_BE, ROLES_MAY_BE, RoleField
from job_requests.tag_fields import TAG_MAY_BE, TAGS_MAY_BE, RequestTagKey, RequestTagValue
from job_requests.values import (
    AUTO,
    LEAST_MINUTES,
    MOST_MINUTES,
    MOST_REGIONS,
    STRINGS,
    Buying,
    MayBe,
    Mode,
    Passable,
    TrainingRegion,
    Variable,
    one_of,
)
from job_requests.workbench_field import WORKBENCH_MAY_BE, WorkbenchField
from refusals.fields import OWNER_MAY_BE, Owner, read_whole

LEAST_HOURS = 0.01
DEFAULT_HOURS = 24.0
MOST_VARIABLES = 200
MOST_SECRETS = 50
MOST_DATA = 100
EVENTS = ", ".join(Event)
OWN_TYPES: JsonDict = {"required": ["roles"], "properties": {"instance_types": False, "accelerators": False}}
"""JSON Schema of a request that leaves its types to its roles."""


class JobRequest(ProgramFields):
    """What to train, on what, and for how long at most."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        title="Trainyard request",
        json_schema_extra={
            "if": {"properties": {"preset": {"type": "string"}}, "required": ["preset"]},
            "then": {"not": {"required": ["instance_types", "accelerators"]}},
            "else": {
                "oneOf": [{"required": ["instance_types"]}, {"required": ["accelerators"]}, OWN_TYPES],
                "anyOf": [
                    {"required": ["roles"]},
                    {"required": ["image"]},
                    {"required": ["code", "command"]},
                    {"required": ["workbench", "owner"]},
                ],
                "dependentRequired": {"arguments": ["image"], "processes_per_node": ["launcher"]},
                **NEEDS_LAUNCHER,
            },
        },
    )

    preset: Annotated[
        values.PresetName | None, MayBe("the name of a preset (presets in cdk.json has them), as in two-a10g")
    ] = Field(
        default=None,
        description=(
            "Name, in the deployment's setting presets, of fields that the request gets where it has none of its own; entries of its "
            "environment and tags are added to the preset's."
        ),
        examples=["two-a10g"],
    )
    instance_types: Annotated[
        list[values.TypeName],
        MayBe(f"a list of 1 to {MOST_TYPES} different EC2 types, as in g5.xlarge", "EC2 types, as in g5.xlarge"),
    ] = Field(
        default_factory=list,
        min_length=1,
        max_length=MOST_TYPES,
        description="Instance types, tried in this order, each in every zone that offers it.",
        examples=[["g5.12xlarge", "g4dn.12xlarge"]],
        json_schema_extra={"uniqueItems": True},
    )
    accelerators: Annotated[
        values.Accelerators | None, MayBe("name and number of a machine's accelerators, as in H100:8")
    ] = Field(
        default=None,
        description=(
            "Name and number of a machine's GPUs or Neuron devices, in place of instance_types: every type of the region that has "
            f"exactly these, the one with the fewest vCPUs first, {MOST_TYPES} types at most."
        ),
        examples=["H100:8", "Trainium2:16"],
    )
    region: Annotated[
        TrainingRegion | None,
        MayBe("a region in which the deployment trains (regions with a cidr or a vpc in cdk.json), as in eu-central-1"),
    ] = Field(
        default=None,
        description="Where to train: one of the deployment's training regions, its home region where none is named.",
        examples=["eu-central-1"],
    )
    regions: Annotated[
        values.TrainingRegions,
        MayBe(
            f"{AUTO}, or a list of 1 to {MOST_REGIONS} different training regions, as in eu-central-1",
            "regions in which the deployment trains, as in eu-central-1",
        ),
    ] = Field(
        default=None,
        description=(
            "Where to train, in place of region: several of the deployment's training regions, or auto for all of them. All nodes of "
            "an attempt run in one zone; another attempt may run in another region."
        ),
        examples=[["eu-central-1", "eu-west-1"], AUTO],
    )
    nodes: Annotated[int, MayBe("a whole number from 1", limit="max_nodes")] = Field(
        default=1, ge=1, description="Machines that train together; the deployment's limits.max_nodes at most."
    )
    roles: Annotated[list[RoleField], MayBe(ROLES_MAY_BE, ROLE_MAY_BE)] = Field(
        default_factory=list,
        min_length=1,
        max_length=MOST_ROLES,
        description=(
            "In place of nodes: roles in the order of ranks, each with a count and, where the request's own will not do, with a program, "
            "an image, types and a market. All run in one zone."
        ),
        examples=[[{"name": "chief"}, {"name": "ps", "count": 2, "instance_types": ["r7i.xlarge"], "ends": "served"}]],
    )
    efa: Annotated[values.EfaMode, MayBe("auto, true, false (true and false without quotes)")] = Field(
        default=Mode.AUTO,
        description=(
            "Whether nodes talk over EFA: true (every type must have it), false, or auto (where a type has it and there is more than one "
            "node)."
        ),
    )
    market: Annotated[Buying, BeforeValidator(one_of(Buying, "market")), MayBe(", ".join(Buying))] = Field(
        default=Buying.ON_DEMAND,
        description=(
            "How capacity is bought: on-demand; spot (cheaper, and AWS may take the nodes back: the job goes on from its newest "
            "checkpoint); or spot-then-on-demand (of each type on-demand where no place has spot capacity)."
        ),
    )
    reservation: Annotated[
        values.ReservationName | None,
        MayBe(
            "id of a Capacity Reservation or Capacity Block, as in cr-0123456789abcdef0, or ARN of a resource group of them"
        ),
    ] = Field(
        default=None,
        description=(
            "Id of a Capacity Reservation or a Capacity Block, or ARN of a resource group of such: nodes run there and nowhere else. It "
            "has to carry the deployment's tag. A block that begins later is waited for (max_wait_hours)."
        ),
        examples=["cr-0123456789abcdef0"],
    )
    max_hours: Annotated[float | None, MayBe(f"a number from {LEAST_HOURS:g}", limit="max_hours")] = Field(
        default=None,
        ge=LEAST_HOURS,
        allow_inf_nan=False,
        description="Trainyard stops the job after this many hours, whatever happens (24, or the deployment's limit).",
    )
    max_wait_hours: Annotated[float, MayBe("a number from 0", limit="max_wait_hours")] = Field(
        default=0,
        ge=0,
        allow_inf_nan=False,
        description=(
            "Hours that the job may wait for capacity where no rung has any, all attempts together; they do not count as max_hours. "
            "Without it the job fails when the launch patience is over."
        ),
        examples=[0, 48],
    )
    max_cost_usd: Annotated[float | None, MayBe("a number of US dollars above 0, as in 100")] = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description=(
            "The most US dollars that the nodes of all attempts may cost with their disks, at on-demand prices: the job commits a last "
            "checkpoint and ends before it has cost more. Without it the job has no cap."
        ),
        examples=[100],
    )
    dry_run: Annotated[bool, MayBe("true or false")] = Field(
        default=False,
        description="Checks, plans and prices the job, and starts nothing: the execution's output has the plan.",
    )
    checkpoint_minutes: Annotated[float, MayBe(f"a number from {LEAST_MINUTES:g} to {MOST_MINUTES}")] = Field(
        default=10,
        ge=LEAST_MINUTES,
        le=MOST_MINUTES,
        allow_inf_nan=False,
        description="Minutes between two commits of the checkpoint and artifact folders.",
    )
    checkpoint_scope: Annotated[Scope, BeforeValidator(one_of(Scope, "scope")), MayBe(", ".join(Scope))] = Field(
        default=Scope.AUTO,
        description=(
            "Whose files in CHECKPOINT_DIR are the checkpoint: rank0 (of rank 0 alone), shards (of every rank, and none may be missing), "
            "or auto (of every rank that has any)."
        ),
    )
    checkpoint_layout: Annotated[
        CheckpointLayout, BeforeValidator(one_of(CheckpointLayout, "layout")), MayBe(", ".join(CheckpointLayout))
    ] = Field(
        default=CheckpointLayout.AUTO,
        description=(
            "Whose layout checkpoints have that PROGRESS_FILE does not name: a framework's, auto (the one that the files show), or none "
            "(of no framework, whatever the files look like)."
        ),
    )
    checkpoint_restore: Annotated[
        Selection, BeforeValidator(one_of(Selection, "selection")), MayBe(", ".join(Selection))
    ] = Field(
        default=Selection.ALL,
        description=(
            "Which files of a checkpoint a node gets back in a new attempt: all (of every rank), or own (of its own rank and of rank 0)."
        ),
    )
    resume_from: Annotated[values.SourceJob | None, MayBe(values.RESUME_MAY_BE)] = Field(
        default=None,
        description=(
            "Name of another job of this deployment, which has ended: training begins from its newest committed checkpoint, whichever "
            "region has it."
        ),
        examples=["resnet-50-a"],
    )
    retries: Annotated[values.Retries, MayBe(values.RETRIES_MAY_BE)] = Field(
        default=None,
        description=(
            "How often the job begins again, from its newest checkpoint, after its own command has ended with one of exit_codes (all "
            "without them; 128 + n where signal n ended it). Lost nodes do not count."
        ),
        examples=[{"times": 2, "exit_codes": [75]}],
    )
    stall: Annotated[
        values.StallField | None,
        MayBe(
            'an object of minutes and then, as in {"minutes": 30, "then": "restart"}',
            f"minutes (from {LEAST_MINUTES:g} to {MOST_MINUTES}) and then (one of {', '.join(Reaction)})",
        ),
    ] = Field(
        default=None,
        description=(
            "What Trainyard does once the training has made no progress for this many minutes: its PROGRESS_FILE says nothing new or, "
            "without one, it writes neither output nor checkpoints. Without it Trainyard does nothing."
        ),
        examples=[{"minutes": 30, "then": "restart"}],
    )
    notify: Annotated[
        list[Annotated[Event, BeforeValidator(one_of(Event, "known event"))]],
        MayBe(f"a list of different events, each one of {EVENTS}", f"one of {EVENTS}"),
    ] = Field(
        default_factory=list,
        max_length=len(Event),
        description=(
            "Events of which the notification topic gets a message: done, failed (also by a person who stops the job), recovered (a new "
            "attempt trains), stalled (by stall, whatever follows). Without it only a stall whose reaction is notify sends one."
        ),
        examples=[["failed", "recovered"]],
        json_schema_extra={"uniqueItems": True},
    )
    health: Annotated[
        HealthCheck, BeforeValidator(one_of(HealthCheck, "health check")), MayBe(", ".join(HealthCheck))
    ] = Field(
        default=HealthCheck.QUICK,
        description=(
            "How nodes check their machine: quick (GPUs, errors that the kernel reports, EFA devices, disk, before the training and once "
            "the command has failed), deep (that, and an all-reduce between the nodes just before the training) or off. An unhealthy "
            "machine is replaced by a new attempt."
        ),
    )
    environment: Annotated[
        dict[Variable, Passable],
        MayBe(f"an object of up to {MOST_VARIABLES} names of variables and their values", STRINGS),
    ] = Field(default_factory=dict, description="Environment variables of the command.", max_length=MOST_VARIABLES)
    secrets: Annotated[
        dict[Variable, values.Secret],
        MayBe(
            f"an object of up to {MOST_SECRETS} names of variables and the ARNs of their secrets",
            "arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME",
        ),
    ] = Field(
        default_factory=dict,
        max_length=MOST_SECRETS,
        description="Environment variable to the ARN of a Secrets Manager secret under the deployment's path; the node reads the value.",
    )
    data: Annotated[
        list[values.Location],
        MayBe(
            f"a list of up to {MOST_DATA} addresses, as in s3://bucket/folder/", "addresses, as in s3://bucket/folder/"
        ),
    ] = Field(
        default_factory=list,
        max_length=MOST_DATA,
        description="S3 locations that must be readable before anything starts.",
    )
    volume_gb: Annotated[int | None, MayBe("a whole number from 1", limit="max_volume_gb")] = Field(
        default=None,
        ge=1,
        description=(
            "GiB of each node's root volume, the image included (the deployment's default, or more where image and code need it)."
        ),
    )
    machine_image: Annotated[
        values.MachineImageName | None,
        MayBe("the name of an image (machine_images in cdk.json has them), as in digits"),
    ] = Field(
        default=None,
        description="Name, in the deployment's setting machine_images, of the image that nodes start from; that of the type without it.",
        examples=["digits"],
    )
    job_role: Annotated[
        values.JobRole | None, MayBe("the name of a role (job_roles in cdk.json has them), as in datasets")
    ] = Field(
        default=None,
        description="Name, in the deployment's setting job_roles, of the role whose rights the training gets; none without it.",
        examples=["datasets"],
    )
    mounts: Annotated[list[MountField], MayBe(MOUNTS_MAY_BE, MOUNT_MAY_BE)] = Field(
        default_factory=list,
        max_length=MOST_MOUNTS,
        description="File systems of the deployment's setting file_systems that every node has in its folders, with an image or without.",
        examples=[[{"from": "fsx:corpus", "at": "/data", "read_only": True}]],
    )
    tags: Annotated[dict[RequestTagKey, RequestTagValue], MayBe(TAGS_MAY_BE, TAG_MAY_BE)] = Field(
        default_factory=dict,
        max_length=MOST_OF_A_REQUEST,
        description=(
            "Tags, as of a cost centre, on the job's instances, volumes and network interfaces, beside those of the deployment's settings "
            "tags, whose keys a request cannot have. The setting required_tags may want some."
        ),
        examples=[{"CostCenter": "4711"}],
    )
    grid_line: Annotated[GridLineField | None, MayBe(GRID_LINE_MAY_BE)] = Field(
        default=None,
        description="Which line of which grid the job is, written by the grid; people leave it out.",
        examples=[{"execution": "arn:aws:states:eu-central-1:123456789012:execution:yard-grid:sweep-7", "index": 0}],
    )
    owner: Annotated[Owner, MayBe(OWNER_MAY_BE)] = Field(
        default="", description="Whom to ask about this job; a tag on everything it uses."
    )

    workbench: Annotated[WorkbenchField | None, MayBe(WORKBENCH_MAY_BE)] = Field(
        default=None,
        description=(
            "Makes the job a workbench: JupyterLab on its one node, which the owner opens through a tunnel. Its folder is the mount at "
            "/bench, or else the job's checkpoint, from which resume_from goes on. In place of command; only with the setting workbench."
        ),
        examples=[{"idle_minutes": 60, "install": True}],
    )

    _whole = field_validator("nodes", "volume_gb", mode="before")(read_whole)

    @property
    def anywhere(self) -> bool:
        """Whether every training region will do."""
        return self.regions == []

    @property
    def region_field(self) -> str:
        """The field that names the region, for refusals."""
        return "region" if self.regions is None else "regions"

    def list_regions(self, home: str, training: Sequence[str]) -> tuple[str, ...]:
        """Returns the regions in the order of the request; for "auto" all `training` regions, the `home` region first."""
        if self.regions is None:
            return (self.region or home,)
        if self.anywhere:
            return tuple(sorted(training, key=lambda region: region != home))
        return tuple(self.regions)

    @field_validator("instance_types", "regions", "notify")
    @classmethod
    def _different(cls, value: object) -> object:
        if isinstance(value, list) and (twice := sorted({name for name in value if value.count(name) > 1})):
            raise ValueError(f"{', '.join(twice)} is named more than once")
        return value


def schema() -> dict[str, Any]:
    """JSON Schema of the request, for `docs/reference/request.schema.json`."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **JobRequest.model_json_schema()}
