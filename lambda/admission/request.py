"""Reads the request that a person pastes into the console: its shape, limits and defaults. Checks that need AWS are in policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    field_validator,
)

from admission.efa import EFA_MAY_BE, Mode
from admission.values import (
    AUTO,
    MOST_BYTES,
    Accelerators,
    Buying,
    JobRole,
    Location,
    MachineImageName,
    Passable,
    ReservationName,
    Secret,
    TrainingRegion,
    TypeName,
    Variable,
    one_of,
    read_efa,
    read_regions,
    read_words,
)
from contract.environments import Limits
from contract.jobs import Scope, Selection
from refusals.fields import ARCHIVE_MAY_BE, OWNER_MAY_BE, REGION, ArchiveAddress, Owner
from refusals.wording import line

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
"""The least and the most minutes between two commits of a checkpoint."""
MOST_VARIABLES = 200
MOST_SECRETS = 50
MOST_DATA = 100


class JobRequest(BaseModel):
    """What to train, on what, and for how long at most."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        title="Trainyard request",
        json_schema_extra={"oneOf": [{"required": ["instance_types"]}, {"required": ["accelerators"]}]},
    )

    code: ArchiveAddress = Field(
        description="S3 address of the archive (.tar, .tar.gz, .tgz or .zip) that is unpacked on each node.",
        examples=["s3://my-bucket/uploads/ddp_digits.tar.gz"],
    )
    command: Annotated[list[Passable], BeforeValidator(read_words)] = Field(
        min_length=1,
        max_length=MOST_ARGUMENTS,
        description=(
            "Arguments of the command that runs on every node, as they stand; or one string without shell syntax, split as a shell "
            "splits words. No shell runs either."
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
        default=None, gt=0, allow_inf_nan=False, description="Refused until the money cap is enforced; use max_hours."
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
    owner: Owner = Field(default="", description="Whom to ask about this job; a tag on everything it uses.")

    @property
    def anywhere(self) -> bool:
        """Whether every training region will do."""
        return self.regions == []

    @field_validator("command")
    @classmethod
    def _program(cls, value: list[str]) -> list[str]:
        if not value[0].strip():
            raise ValueError("its first word is blank; allowed: the program to run, then its arguments")
        return value

    @field_validator("instance_types", "regions")
    @classmethod
    def _different(cls, value: object) -> object:
        if isinstance(value, list) and (twice := sorted({name for name in value if value.count(name) > 1})):
            raise ValueError(f"{', '.join(twice)} is named more than once")
        return value


def allowed(limits: Limits) -> dict[str, str]:
    """Says for each field what it may be in this deployment."""
    return {
        "code": ARCHIVE_MAY_BE,
        "command": f"a list of 1 to {MOST_ARGUMENTS:,} texts, or one text of such words",
        "instance_types": f"a list of 1 to {MOST_TYPES} different EC2 types, as in g5.xlarge",
        "accelerators": "name and number of a machine's accelerators, as in H100:8",
        "region": "a region in which the deployment trains (regions with a cidr in cdk.json), as in eu-central-1",
        "regions": f"{AUTO}, or a list of 1 to {MOST_REGIONS} different training regions, as in eu-central-1",
        "nodes": f"a whole number from 1 to {limits.max_nodes} (limits.max_nodes in cdk.json)",
        "efa": EFA_MAY_BE,
        "market": ", ".join(Buying),
        "reservation": RESERVATION_MAY_BE,
        "max_hours": f"a number from {LEAST_HOURS:g} to {limits.max_hours:g} (limits.max_hours in cdk.json)",
        "max_wait_hours": f"a number from 0 to {limits.max_wait_hours:g} (limits.max_wait_hours in cdk.json)",
        "max_cost_usd": "nothing yet; leave it out and limit max_hours",
        "checkpoint_minutes": f"a number from {LEAST_MINUTES:g} to {MOST_MINUTES}",
        "checkpoint_scope": ", ".join(Scope),
        "checkpoint_restore": ", ".join(Selection),
        "environment": f"an object of up to {MOST_VARIABLES} names of variables and their texts",
        "secrets": f"an object of up to {MOST_SECRETS} names of variables and the ARNs of their secrets",
        "data": f"a list of up to {MOST_DATA} addresses, as in s3://bucket/folder/",
        "volume_gb": f"a whole number from 1 to {limits.max_volume_gb} (limits.max_volume_gb in cdk.json)",
        "machine_image": "the name of an image (machine_images in cdk.json has them), as in digits",
        "job_role": "the name of a role (job_roles in cdk.json has them), as in datasets",
        "owner": OWNER_MAY_BE,
    }


ENTRIES = {
    "command": f"texts of up to {MOST_BYTES:,} bytes",
    "instance_types": "EC2 types, as in g5.xlarge",
    "regions": "regions in which the deployment trains, as in eu-central-1",
    "environment": f"texts of up to {MOST_BYTES:,} bytes",
    "secrets": "arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME",
    "data": "addresses, as in s3://bucket/folder/",
}
"""Says what the entries of a list or an object may be."""
EMPTY: dict[str, Any] = {"code": "", "command": []}
"""Values of wrong fields that have no default, so that nothing is looked up for them."""
_STAND_IN = {"code": "s3://any/a.zip", "command": ["any"]}


def read(raw: object, limits: Limits) -> tuple[JobRequest, list[str]]:
    """Returns the request and a line for every problem; a wrong field has its default, or its value in EMPTY.

    So the right fields are still judged, and a person sees every problem at once.
    """
    try:
        request, problems, given = JobRequest.model_validate(raw), list[str](), raw
    except ValidationError as refused:
        errors = refused.errors(include_url=False)
        problems = [line(error, allowed(limits), ENTRIES) for error in errors]
        wrong = {str(error["loc"][0]) for error in errors if error["loc"]}
        given = raw if wrong else None  # without a wrong field it is no request at all
        request = _rest(given, wrong)
    both = sorted(request.environment.keys() & request.secrets.keys())
    if request.region is not None and request.regions is not None:
        problems.append("regions: region is there too; allowed: one of the two")
    problems += [f"secrets.{name}: is in environment too; allowed: one value a variable" for name in both]
    return request, [*problems, *_type_problems(given, request, limits)]


def _type_problems(given: object, request: JobRequest, limits: Limits) -> list[str]:
    if isinstance(given, Mapping) and not {"instance_types", "accelerators"} & given.keys():
        return [
            f"instance_types: is missing; allowed: {allowed(limits)['instance_types']}, or accelerators in its place, as in H100:8"
        ]
    if request.instance_types and request.accelerators:
        return ["accelerators: instance_types is there too; allowed: one of the two"]
    return []


def _rest(given: object, wrong: set[str]) -> JobRequest:
    """Reads the fields that are right."""
    fields = given if isinstance(given, Mapping) else {}
    right = {name: fields[name] for name in JobRequest.model_fields if name in fields and name not in wrong}
    request = JobRequest.model_validate({**_STAND_IN, **right})
    return request.model_copy(update={name: empty for name, empty in EMPTY.items() if name not in right})


def schema() -> dict[str, Any]:
    """JSON Schema of the request, for `docs/request.schema.json`."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **JobRequest.model_json_schema()}
