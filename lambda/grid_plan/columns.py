"""Defines the fields of a line of a manifest, their form and their defaults; policy checks everything else."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from contract.environments import LONGEST_TRAINING_H
from contract.grid import Backend
from contract.images import parsed
from contract.metric_values import write_expression
from grid_plan import code, limits
from grid_plan.spellings import find_stand_in, trim
from refusals.addresses import Address
from refusals.expressions import find_fault
from refusals.fields import GZIPPED, MOST_ADDRESS, REGION, read_whole, without_nul
from refusals.wording import plain, what

AUTO = "auto"
REQUIRED = ("image", "instance_type")
"""Fields that every training needs, and whose only default is in the deployment's settings."""
MODES = ("File", "FastFile", "Pipe")
ON_DEMAND, SPOT = "on-demand", "spot"
MPI, TORCHRUN, NONE = "mpi", "torchrun", "none"
TAGGABLE = r"^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$"
"""Characters that SageMaker takes in the key and the value of a tag."""
DEFAULTS: dict[str, Any] = {
    "region": AUTO,
    "channel": "training",
    "mode": "File",
    "instance_count": 1,
    "volume_gb": 30,
    "market": ON_DEMAND,
    "max_hours": limits.DEFAULT_HOURS,
    "distribution": NONE,
    "network_isolation": False,
    "encrypt_traffic": False,
}
"""Defaults where neither a line nor the input's `defaults` set a field; max_hours never exceeds the deployment's limit."""


def _region(value: str) -> str:
    if value != AUTO and not re.match(REGION, value):
        raise ValueError(f"{plain(value)} is not a region name")
    return value


def _copies(value: object) -> object:
    """Splits a text with several addresses at spaces before `s3://`, because a key may contain spaces too."""
    if isinstance(value, str):
        return re.split(r"\s+(?=s3://)", value.strip())
    return value


def _address(value: str) -> str:
    """Normalises an address, so that equal addresses have equal texts."""
    return str(Address.parse(trim(value)))


def _folder(value: str) -> str:
    if not Address.parse(value).key.strip("/"):
        raise ValueError(f"{plain(value)} is a whole bucket")
    return value.rstrip("/")


def _code(value: str) -> str:
    if not Address.parse(value).key.endswith(GZIPPED):
        raise ValueError(f"{plain(value)} is not named like an archive that SageMaker's containers unpack")
    return value


def _image(value: str) -> str:
    try:
        parsed(value)
    except ValueError as problem:
        raise ValueError(f"{plain(value)} {problem}") from None
    return value


def _matching(pattern: str, problem: str) -> Callable[[str], str]:
    fits = re.compile(pattern)

    def check(value: str) -> str:
        if not fits.fullmatch(value):
            raise ValueError(f"{plain(value)} {problem}")
        return value

    return check


def _one_of(*options: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value not in options:
            raise ValueError(f"{plain(value)} is not one of them")
        return value

    return check


def _text(most: int) -> BeforeValidator:
    """Accepts any text up to a length; its refusal says what is allowed, because no table knows these entries."""

    def check(value: object) -> object:
        if not isinstance(value, str):
            raise ValueError(f"{what(value)} is not a string; allowed: strings of up to {most:,} characters")
        if len(value) > most:
            raise ValueError(f"has {len(value):,} characters; allowed: up to {most:,}")
        return without_nul(value)

    return BeforeValidator(check)


def _name(value: str) -> str:
    if not value or len(value) > limits.MOST_NAME:
        raise ValueError(f"is a name of {len(value):,} characters; allowed: 1 to {limits.MOST_NAME} characters")
    return value


def sent(value: Any) -> str:
    """Returns a hyperparameter as SageMaker receives it: texts unchanged, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("is not a finite number; allowed: numbers that JSON has")
    text = without_nul(sent(value))
    if len(text) > limits.MOST_VALUE:
        raise ValueError(
            f"has {len(text):,} characters; allowed: up to {limits.MOST_VALUE:,} (long values belong in the data)"
        )
    return value


def _expression(value: str) -> str:
    if fault := find_fault(without_nul(value)):
        raise ValueError(fault)
    return value


def _tag(key: str) -> str:
    if key.lower().startswith("aws:") or key.lower().startswith(limits.RESERVED):
        raise ValueError(f"begins with a reserved prefix; allowed: keys without aws: and {limits.RESERVED}")
    return key


def _options(value: str) -> str:
    try:
        shlex.split(value)
    except ValueError as problem:
        raise ValueError(
            f"{plain(value)} cannot be split into words ({problem}); allowed: options of mpirun, quoted as for a shell"
        ) from None
    return value


def _different(values: list[Any]) -> list[Any]:
    texts = [sent(value) for value in values]
    if twice := sorted({text for text in texts if texts.count(text) > 1}):
        raise ValueError(f"has {plain(twice[0])} twice; allowed: different values")
    return values


Text: TypeAlias = Annotated[str, Field(max_length=2048)]
Location: TypeAlias = Annotated[str, Field(max_length=MOST_ADDRESS), AfterValidator(_address)]
Copies: TypeAlias = Annotated[
    list[Location],
    BeforeValidator(_copies),
    Field(min_length=1, max_length=limits.MOST_COPIES),
]
ONE_OR_MORE: dict[str, Any] = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": limits.MOST_COPIES},
    ]
}
Mode: TypeAlias = Annotated[Text, AfterValidator(_one_of(*MODES))]
CHANNEL = rf"[A-Za-z0-9._-]{{1,{limits.MOST_CHANNEL_NAME}}}"
ChannelName: TypeAlias = Annotated[Text, AfterValidator(_matching(CHANNEL, "is not a channel name"))]
Hyperparameter: TypeAlias = Annotated[str, AfterValidator(_name)]
Variable: TypeAlias = Annotated[
    str,
    AfterValidator(
        _matching(r"[A-Za-z_][A-Za-z0-9_]{0,511}", "is not a variable name; allowed: letters, digits and _")
    ),
]
TagKey: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=limits.MOST_TAG_KEY, pattern=TAGGABLE), AfterValidator(_tag)
]
TagValue: TypeAlias = Annotated[str, Field(max_length=limits.MOST_TAG_VALUE, pattern=TAGGABLE)]
Arguments: TypeAlias = Annotated[
    list[Annotated[str, _text(limits.MOST_ARGUMENT)]], Field(min_length=1, max_length=limits.MOST_ARGUMENTS)
]
Program: TypeAlias = Annotated[str, AfterValidator(_matching(code.PROGRAM, "is not a plain path"))]
KEY = (
    r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|mrk-[0-9a-fA-F]{32}|alias/[a-zA-Z0-9/_-]{1,250}"
    r"|arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:(key/[a-zA-Z0-9-]{1,64}|alias/[a-zA-Z0-9/_-]{1,250})"
)
"""Everything by which KMS finds a key. An alias begins with alias/, so that no other word passes for one."""
Key: TypeAlias = Annotated[Text, AfterValidator(_matching(KEY, "is not a KMS key"))]


class Closed(BaseModel):
    """No unknown fields, no text for numbers, no change afterwards."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Channel(Closed):
    """One channel of data, with copies of it in several regions."""

    data: Copies = Field(json_schema_extra=ONE_OR_MORE)
    mode: Mode | None = Field(default=None, description="By default, the line's mode.")
    content_type: Annotated[str, Field(max_length=256)] | None = None
    sharded: bool = Field(default=False, description="Each instance gets a part of the objects, not all of them.")


def _channel(value: object) -> object:
    """Turns an address, or a list of addresses, into a channel with nothing else set."""
    return {"data": value} if isinstance(value, (str, list)) else value


class TrainingSpec(Closed):
    """One line of a manifest, in its JSON form. Every field may come from the input's `defaults` instead."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, title="Trainyard grid line")

    backend: Annotated[Text, AfterValidator(_one_of(*Backend))] | None = Field(
        default=None,
        description="What trains the line: sagemaker (the default); ec2, a job on clusters of our own; or kubernetes, an MPIJob on EKS.",
    )
    region: Annotated[Text, AfterValidator(_region)] | None = Field(
        default=None,
        description="Where to train; auto, the default, takes the region with the data and the image where an hour costs least.",
        examples=["eu-central-1", AUTO],
    )
    data: Copies | None = Field(
        default=None,
        description="S3 location of the data, or of copies of it in several regions; a CSV column may call it s3_location.",
        examples=["s3://my-data/train/", ["s3://my-data/train/", "s3://my-data-us/train/"]],
        json_schema_extra=ONE_OR_MORE,
    )
    channel: ChannelName | None = Field(default=None, description="Name of the channel that `data` becomes (training).")
    mode: Mode | None = Field(
        default=None, description="How data reaches the container: File (default), FastFile, Pipe."
    )
    channels: dict[ChannelName, Annotated[Channel, BeforeValidator(_channel)]] | None = Field(
        default=None,
        max_length=limits.MOST_CHANNELS,
        description="Further channels by name: an address, a list of copies, or an object of data, mode, content_type, sharded.",
        examples=[{"validation": "s3://my-data/validation/"}],
    )
    image: Annotated[Text, AfterValidator(_image)] | None = Field(
        default=None,
        description="Training image: repository:tag or repository@digest of the deployment's, or name and tag of a Deep Learning "
        "Container of AWS; each region uses its own registry. Or a whole address; one of AWS's means that of the region.",
        examples=["images:v1", "pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-sagemaker"],
    )
    code: Annotated[str, Field(max_length=MOST_ADDRESS), AfterValidator(_code)] | None = Field(
        default=None,
        description="Archive of code beside the image, unpacked to /opt/ml/code, the working folder of program or entrypoint.",
        examples=["s3://my-bucket/uploads/code.tar.gz"],
    )
    program: Program | None = Field(
        default=None,
        description="File of the code that AWS's containers for SageMaker run (entry_point of its SDK), with the hyperparameters "
        "as arguments.",
        examples=["train.py"],
    )
    entrypoint: Arguments | None = Field(
        default=None,
        description="Replaces the image's own entry point; it may be called command, as in a job.",
        examples=[["python", "train.py"]],
    )
    arguments: Arguments | None = Field(default=None, description="Arguments of the entry point.")
    hyperparameters: dict[Hyperparameter, Annotated[Any, AfterValidator(_value)]] | None = Field(
        default=None,
        max_length=limits.MOST_HYPERPARAMETERS,
        description="Texts reach the program unchanged, everything else as JSON. In CSV a column each, hp.<name>, or one column of JSON.",
        examples=[{"lr": 0.1, "optimizer": "sgd"}],
    )
    environment: dict[Variable, Annotated[str, _text(limits.MOST_VARIABLE)]] | None = Field(
        default=None, max_length=limits.MOST_VARIABLES, description="Environment variables; in CSV columns env.<NAME>."
    )
    sweep: (
        dict[
            Hyperparameter,
            Annotated[
                list[Annotated[Any, AfterValidator(_value)]],
                Field(min_length=1, max_length=limits.MOST_SWEEP),
                AfterValidator(_different),
            ],
        ]
        | None
    ) = Field(
        default=None,
        max_length=limits.MOST_SWEPT,
        description="Hyperparameters with lists of values: a training for every combination.",
        examples=[{"lr": [0.1, 0.01], "depth": [18, 50]}],
    )
    instance_type: Text | None = Field(
        default=None, description="A SageMaker instance type.", examples=["ml.g5.12xlarge"]
    )
    instance_count: int | None = Field(default=None, ge=1, description="Instances that train together (1).")
    volume_gb: int | None = Field(default=None, ge=1, description="Size of each instance's disk (30).")
    market: Annotated[Text, AfterValidator(_one_of(ON_DEMAND, SPOT))] | None = Field(
        default=None, description="on-demand (default), or spot: managed spot training."
    )
    max_hours: float | None = Field(
        default=None,
        ge=limits.LEAST_HOURS,
        allow_inf_nan=False,
        description="SageMaker stops the training after this many hours (24, or the limit).",
    )
    max_wait_hours: float | None = Field(
        default=None,
        ge=limits.LEAST_HOURS,
        le=LONGEST_TRAINING_H,
        allow_inf_nan=False,
        description="Spot only: max_hours and the wait for capacity together (24 h more than max_hours).",
    )
    checkpoint: Annotated[Location, AfterValidator(_folder)] | None = Field(
        default=None,
        description="Folder of the checkpoints, under grids/ in the bucket of bytes of the region; by default, one of the grid.",
    )
    distribution: Annotated[Text, AfterValidator(_one_of(MPI, TORCHRUN, NONE))] | None = Field(
        default=None, description="How SageMaker's own containers start several processes: mpi, torchrun or none."
    )
    processes_per_host: int | None = Field(default=None, ge=1, le=limits.MOST_PROCESSES, description="mpi alone.")
    mpi_options: Annotated[str, Field(max_length=limits.MOST_OPTIONS), AfterValidator(_options)] | None = Field(
        default=None, description="mpi only: further options of mpirun.", examples=["-x NCCL_DEBUG=INFO"]
    )
    tags: dict[TagKey, TagValue] | None = Field(
        default=None,
        max_length=limits.MOST_TAGS,
        description="Further tags, for example of cost centres; in CSV columns tag.<key>.",
    )
    metrics: (
        dict[
            Annotated[str, Field(min_length=1, max_length=255)],
            Annotated[str, Field(min_length=1, max_length=limits.MOST_EXPRESSION), AfterValidator(_expression)],
        ]
        | None
    ) = Field(
        default=None,
        max_length=limits.MOST_METRICS,
        description="Metric's name to the regular expression that finds its value in the log; in CSV columns metric.<name>.",
        examples=[{"loss": write_expression("loss")}],
    )
    subnets: list[Annotated[Text, AfterValidator(_matching("subnet-[0-9a-f]{8,17}", "is not a subnet id"))]] | None = (
        Field(
            default=None,
            min_length=1,
            max_length=16,
            description="Refused: the role of trainings has no right on networks.",
        )
    )
    security_groups: (
        list[Annotated[Text, AfterValidator(_matching("sg-[0-9a-f]{8,17}", "is not a security group id"))]] | None
    ) = Field(default=None, min_length=1, max_length=5, description="Refused, as subnets are.")
    kms_key: Key | None = Field(default=None, description="Encrypts the model's artifacts.")
    volume_kms_key: Key | None = Field(
        default=None, description="Encrypts the disks (types without disks of their own)."
    )
    network_isolation: bool | None = Field(default=None, description="The container reaches no network at all.")
    encrypt_traffic: bool | None = Field(default=None, description="Between the instances of one training.")

    _whole = field_validator("instance_count", "volume_gb", "processes_per_host", mode="before")(read_whole)

    @field_validator("*", mode="before")
    @classmethod
    def _meant(cls, value: object) -> object:
        """Refuses what only stands in the place of a value: a field for which there is none is left out."""
        if not isinstance(value, str):
            return value
        if why := find_stand_in(value):
            raise ValueError(f"{plain(value)} {why}")
        return trim(value)
