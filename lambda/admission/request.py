"""The request that a person pastes into the console: its fields, with their limits and defaults. Another module reads it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
)

from admission.efa import Mode
from admission.mounts import MountField
from admission.values import (
    AUTO,
    Accelerators,
    Buying,
    CodeSource,
    ContainerName,
    JobRole,
    Location,
    MachineImageName,
    Passable,
    ReservationName,
    Retries,
    Secret,
    SourceJob,
    TrainingRegion,
    TypeName,
    Variable,
    one_of,
    read_efa,
    read_regions,
    read_words,
)
from contract.events import Event
from contract.health import HealthCheck
from contract.jobs import NoProgress, Reaction, Scope, Selection
from contract.mounts import MOST as MOST_MOUNTS
from refusals.fields import REGION, Owner, read_whole

RESERVATION_MAY_BE = (
    "id of a Capacity Reservation or Capacity Block, as in cr-0123456789abcdef0, or ARN of a resource group of them"
)
MOST_ARGUMENTS = 1000
"""The most arguments of the command."""
MOST_TYPES = 10
MOST_REGIONS = 30
LEAST_HOURS = 0.01
DEFAULT_HOURS = 24.0
LEAST_MINUTES, MOST_MINUTES = 0.01, 1440
"""The least and the most minutes between two commits of a checkpoint, and without progress."""
STALL = '{"minutes": 30, "then": "restart"}'
MOST_VARIABLES = 200
MOST_SECRETS = 50
MOST_DATA = 100


class StallField(BaseModel):
    """When a training that makes no progress counts as stalled, and what then follows."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    minutes: float = Field(
        ge=LEAST_MINUTES,
        le=MOST_MINUTES,
        allow_inf_nan=False,
        description="Minutes without progress; more than the longest pause between two steps, evaluation and saving included.",
    )
    then: Annotated[Reaction, BeforeValidator(one_of(Reaction, "reaction"))] = Field(
        description=(
            "notify (tell the notification topic), restart (a new attempt from the newest checkpoint) or stop (end the job after a last "
            "checkpoint)."
        )
    )

    @property
    def meant(self) -> NoProgress:
        return NoProgress(minutes=self.minutes, then=self.then)


class JobRequest(BaseModel):
    """What to train, on what, and for how long at most."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        title="Trainyard request",
        json_schema_extra={
            "oneOf": [{"required": ["instance_types"]}, {"required": ["accelerators"]}],
            "anyOf": [{"required": ["image"]}, {"required": ["code", "command"]}],
            "dependentRequired": {"arguments": ["image"]},
        },
    )

    code: CodeSource = Field(
        default_factory=str,
        description=(
            "S3 address of the archive (.tar, .tar.gz, .tgz or .zip) that is unpacked on each node, or a commit of a git repository (git: "
            "its https address, ref: the commit's whole hash), which Admit fetches once. With image it may be left out; where it is given, "
            "the container has it as its working folder."
        ),
        examples=[
            "s3://my-bucket/uploads/ddp_digits.tar.gz",
            {"git": "https://github.com/owner/repository.git", "ref": "0123456789abcdef0123456789abcdef01234567"},
        ],
    )
    command: Annotated[list[Passable], BeforeValidator(read_words)] = Field(
        default_factory=list,
        min_length=1,
        max_length=MOST_ARGUMENTS,
        description=(
            "Arguments of the command that runs on every node, as they stand; or one string without shell syntax, split as a shell "
            "splits words. No shell runs either. With image it runs in place of the image's entry point, which runs without it."
        ),
        examples=[
            ["python", "train.py", "--epochs", "20"],
            "python train.py --epochs 20",
            ["bash", "-c", "python prepare.py && python train.py"],
        ],
        json_schema_extra={
            "anyOf": [{"type": "array", "items": {"type": "string"}, "minItems": 1}, {"type": "string", "minLength": 1}]
        },
    )
    image: ContainerName | None = Field(
        default=None,
        description=(
            "Container image that the training runs in: repository and tag (or digest) of the deployment, name and tag of an AWS Deep "
            "Learning Container, or a whole address in a private ECR registry. Its digest at admission is what every node runs. "
            "Without it the training runs on the machine's own image."
        ),
        examples=["images:digits-1", "pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-ec2"],
    )
    arguments: list[Passable] = Field(
        default_factory=list,
        min_length=1,
        max_length=MOST_ARGUMENTS,
        description="Arguments of the image's entry point, or of command, as they stand. Only with image.",
        examples=[["--epochs", "20"]],
    )
    instance_types: list[TypeName] = Field(
        default_factory=list,
        min_length=1,
        max_length=MOST_TYPES,
        description="Tried in this order, each in every zone that has it.",
        examples=[["g5.12xlarge", "g4dn.12xlarge"]],
        json_schema_extra={"uniqueItems": True},
    )
    accelerators: Accelerators | None = Field(
        default=None,
        description=(
            "Name and number of a machine's GPUs or Neuron devices, in place of instance_types: every type of the region that has exactly "
            f"these, the one with the fewest vCPUs first, {MOST_TYPES} types at most."
        ),
        examples=["H100:8", "Trainium2:16"],
    )
    region: TrainingRegion | None = Field(
        default=None,
        description="Where to train: one of the deployment's training regions, its home region where none is named.",
        examples=["eu-central-1"],
    )
    regions: Annotated[list[TrainingRegion] | None, Field(max_length=MOST_REGIONS), BeforeValidator(read_regions)] = (
        Field(
            default=None,
            description=(
                "Where to train, in place of region: several of the deployment's training regions, or auto for all of them. All nodes of "
                "an attempt run in one zone; another attempt may run in another region."
            ),
            examples=[["eu-central-1", "eu-west-1"], AUTO],
            json_schema_extra={
                "anyOf": [
                    {
                        "type": "array",
                        "items": {"type": "string", "pattern": REGION},
                        "minItems": 1,
                        "uniqueItems": True,
                    },
                    {"const": AUTO},
                ]
            },
        )
    )
    nodes: int = Field(
        default=1, ge=1, description="Machines that train together; the deployment's limits.max_nodes at most."
    )
    efa: Annotated[Mode, BeforeValidator(read_efa), WithJsonSchema({"enum": ["auto", True, False]})] = Field(
        default=Mode.AUTO,
        description=(
            "Whether nodes talk over EFA: true (every type must have it), false, or auto (where a type has it and there is more than one "
            "node)."
        ),
    )
    market: Annotated[Buying, BeforeValidator(one_of(Buying, "market"))] = Field(
        default=Buying.ON_DEMAND,
        description=(
            "How capacity is bought: on-demand; spot (cheaper, and AWS may take the nodes back: the job goes on from its newest "
            "checkpoint); or spot-then-on-demand (of each type on-demand where no place has spot capacity)."
        ),
    )
    reservation: ReservationName | None = Field(
        default=None,
        description=(
            "Id of a Capacity Reservation or a Capacity Block, or ARN of a resource group of such: nodes run there and nowhere else. It "
            "has to carry the deployment's tag. A block that begins later is waited for (max_wait_hours)."
        ),
        examples=["cr-0123456789abcdef0"],
    )
    max_hours: float | None = Field(
        default=None,
        ge=LEAST_HOURS,
        allow_inf_nan=False,
        description="The job is stopped after so many hours, whatever happens (24, or the deployment's limit).",
    )
    max_wait_hours: float = Field(
        default=0,
        ge=0,
        allow_inf_nan=False,
        description=(
            "Hours that the job may wait for capacity where no rung has any, all attempts together; they do not count as max_hours. "
            "Without it the job fails when the launch patience is over."
        ),
        examples=[0, 48],
    )
    max_cost_usd: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description=(
            "What the nodes of all attempts together may cost, US dollars, with their disks, at on-demand prices: a last checkpoint is "
            "committed and the job ends before. No cap where it is left out."
        ),
        examples=[100],
    )
    dry_run: bool = Field(
        default=False,
        description="Checks, plans and prices the job, and starts nothing: the execution's output has the plan.",
    )
    checkpoint_minutes: float = Field(
        default=10,
        ge=LEAST_MINUTES,
        le=MOST_MINUTES,
        allow_inf_nan=False,
        description="Minutes between two commits of the checkpoint and artifact folders.",
    )
    checkpoint_scope: Annotated[Scope, BeforeValidator(one_of(Scope, "scope"))] = Field(
        default=Scope.AUTO,
        description=(
            "Whose files in CHECKPOINT_DIR are the checkpoint: rank0 (of rank 0 alone), shards (of every rank, and none may be missing), "
            "or auto (of every rank that has any)."
        ),
    )
    checkpoint_restore: Annotated[Selection, BeforeValidator(one_of(Selection, "selection"))] = Field(
        default=Selection.ALL,
        description=(
            "Which files of a checkpoint a node gets back in a new attempt: all (of every rank), or own (of its own rank and of rank 0)."
        ),
    )
    resume_from: SourceJob | None = Field(
        default=None,
        description=(
            "Name of another job of this deployment, which has ended: training begins from its newest committed checkpoint, in whichever "
            "region that is."
        ),
        examples=["resnet-50-a"],
    )
    retries: Retries = Field(
        default=None,
        description=(
            "How often the job begins again, from its newest checkpoint, after its own command has ended with one of exit_codes (all "
            "without them; 128 + n where signal n ended it). Lost nodes do not count."
        ),
        examples=[{"times": 2, "exit_codes": [75]}],
    )
    stall: StallField | None = Field(
        default=None,
        description=(
            "What follows where the training makes no progress for so many minutes: its PROGRESS_FILE says nothing new, or, without one, "
            "it neither writes output nor checkpoints. Without it nothing follows."
        ),
        examples=[{"minutes": 30, "then": "restart"}],
    )
    notify: list[Annotated[Event, BeforeValidator(one_of(Event, "known event"))]] = Field(
        default_factory=list,
        max_length=len(Event),
        description=(
            "Of what the notification topic is told: done, failed (stopped by a person too), recovered (a new attempt trains), stalled (by "
            "stall, whatever follows). Of nothing without it, but of a stall whose reaction is notify."
        ),
        examples=[["failed", "recovered"]],
        json_schema_extra={"uniqueItems": True},
    )
    health: Annotated[HealthCheck, BeforeValidator(one_of(HealthCheck, "health check"))] = Field(
        default=HealthCheck.QUICK,
        description=(
            "How nodes check their machine: quick (GPUs, errors that the kernel tells, EFA devices, disk, before the training and once the "
            "command has failed), deep (that, and an all-reduce between the nodes just before the training) or off. An unhealthy machine "
            "is replaced by a new attempt."
        ),
    )
    environment: dict[Variable, Passable] = Field(
        default_factory=dict, description="Environment variables of the command.", max_length=MOST_VARIABLES
    )
    secrets: dict[Variable, Secret] = Field(
        default_factory=dict,
        max_length=MOST_SECRETS,
        description="Environment variable to the ARN of a Secrets Manager secret under the deployment's path; the node reads the value.",
    )
    data: list[Location] = Field(
        default_factory=list,
        max_length=MOST_DATA,
        description="S3 locations that must be readable before anything starts.",
    )
    volume_gb: int | None = Field(
        default=None,
        ge=1,
        description=(
            "GiB of each node's root volume, the image included (the deployment's default, or more where image and code need it)."
        ),
    )
    machine_image: MachineImageName | None = Field(
        default=None,
        description="Name, in the deployment's setting machine_images, of the image that nodes start from; that of the type without it.",
        examples=["digits"],
    )
    job_role: JobRole | None = Field(
        default=None,
        description="Name, in the deployment's setting job_roles, of the role whose rights the training gets; none without it.",
        examples=["datasets"],
    )
    mounts: list[MountField] = Field(
        default_factory=list,
        max_length=MOST_MOUNTS,
        description="File systems of the deployment's setting file_systems that every node has in its folders, with an image or without.",
        examples=[[{"from": "fsx:corpus", "at": "/data", "read_only": True}]],
    )
    owner: Owner = Field(default="", description="Whom to ask about this job; a tag on everything it uses.")

    _whole = field_validator("nodes", "volume_gb", mode="before")(read_whole)

    @property
    def anywhere(self) -> bool:
        """Whether every training region will do."""
        return self.regions == []

    @field_validator("command")
    @classmethod
    def _program(cls, value: list[str]) -> list[str]:
        if value and not value[0].strip():
            raise ValueError("its first word is blank; allowed: the program to run, then its arguments")
        return value

    @field_validator("instance_types", "regions", "notify")
    @classmethod
    def _different(cls, value: object) -> object:
        if isinstance(value, list) and (twice := sorted({name for name in value if value.count(name) > 1})):
            raise ValueError(f"{', '.join(twice)} is named more than once")
        return value


def schema() -> dict[str, Any]:
    """JSON Schema of the request, for `docs/reference/request.schema.json`."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **JobRequest.model_json_schema()}
