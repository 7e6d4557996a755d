"""The request that a person pastes into the console, its shape and its defaults; what needs AWS to be judged is in policy."""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from admission.addresses import Address
from contract import training
from contract.jobs import Market

ARCHIVES = (".tar.gz", ".tgz", ".tar", ".zip")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
SECRET = re.compile(r"arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]{1,512}")
INSTANCE_TYPE = r"^[a-z][a-z0-9-]{0,19}\.[a-z0-9-]{1,20}$"
DEFAULT_HOURS = 24.0


def _words(value: object) -> object:
    """A command given as text is split as a shell splits words, and then never sees a shell."""
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError as problem:
        raise ValueError(f"cannot be split into words ({problem}); give a list of arguments instead") from None


class Request(BaseModel):
    """What to train, on what, and for how long at most."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, title="Trainyard request")

    code: str = Field(
        description="S3 address of the archive (.tar, .tar.gz, .tgz or .zip) that is unpacked on each node.",
        examples=["s3://my-bucket/uploads/ddp_digits.tar.gz"],
    )
    command: Annotated[list[Annotated[str, Field(max_length=32_768)]], BeforeValidator(_words)] = Field(
        min_length=1,
        max_length=1000,
        description="Arguments of the command that runs on every node, or one string, split as a shell splits words; no shell runs it.",
        examples=[["python", "train.py", "--epochs", "20"], "python train.py --epochs 20"],
        json_schema_extra={
            "anyOf": [{"type": "array", "items": {"type": "string"}, "minItems": 1}, {"type": "string", "minLength": 1}]
        },
    )
    instance_types: list[Annotated[str, Field(pattern=INSTANCE_TYPE)]] = Field(
        min_length=1,
        max_length=10,
        description="Tried in this order, each in every zone that has it.",
        examples=[["g5.12xlarge", "g4dn.12xlarge"]],
    )
    nodes: int = Field(
        default=1, ge=1, description="Machines that train together; the deployment's limits.max_nodes at most."
    )
    market: Annotated[Market, BeforeValidator(lambda value: Market(value) if value in list(Market) else value)] = Field(
        default=Market.ON_DEMAND, description="How capacity is bought. Only on-demand works yet; spot is refused."
    )
    max_hours: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="The job is stopped after so many hours, whatever happens (24, or the deployment's limit).",
    )
    max_cost_usd: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="Refused until the money cap is enforced; use max_hours."
    )
    checkpoint_minutes: float = Field(
        default=10,
        ge=0.01,
        le=1440,
        allow_inf_nan=False,
        description="Minutes between two commits of the checkpoint and artifact folders.",
    )
    environment: dict[str, Annotated[str, Field(max_length=32_768)]] = Field(
        default_factory=dict, description="Environment variables of the command.", max_length=200
    )
    secrets: dict[str, str] = Field(
        default_factory=dict,
        max_length=50,
        description="Environment variable to the ARN of a Secrets Manager secret under the deployment's path; the node reads the value.",
    )
    data: list[str] = Field(
        default_factory=list, max_length=100, description="S3 locations that must be readable before anything starts."
    )
    volume_gb: int | None = Field(
        default=None, ge=1, description="Size of each node's disk (the deployment's default)."
    )
    owner: str = Field(
        default="",
        max_length=128,
        pattern=r"^[\w .:/=+@-]*$",
        description="Whom to ask about this job; a tag on everything it uses.",
    )

    @field_validator("code")
    @classmethod
    def _archive(cls, value: str) -> str:
        address = Address.parse(value)
        if not address.key.endswith(ARCHIVES):
            raise ValueError(f"ends with none of {', '.join(ARCHIVES)}")
        return value

    @field_validator("data")
    @classmethod
    def _locations(cls, value: list[str]) -> list[str]:
        for location in value:
            Address.parse(location)
        return value

    @field_validator("command")
    @classmethod
    def _arguments(cls, value: list[str]) -> list[str]:
        if not value[0].strip():
            raise ValueError("its first word, the program, is empty")
        if any("\0" in word for word in value):
            raise ValueError("holds a NUL character, which no program can be given")
        return value

    @field_validator("environment", "secrets")
    @classmethod
    def _variables(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not VARIABLE.fullmatch(name):
                raise ValueError(
                    f"{name!r} is no variable name; allowed: letters, digits and _, not beginning with a digit"
                )
            if name in training.RESERVED:
                raise ValueError(f"{name} is set by Trainyard; not to be set: {', '.join(sorted(training.RESERVED))}")
            if "\0" in text:
                raise ValueError(f"{name} holds a NUL character, which no program can be given")
        return value

    @field_validator("secrets")
    @classmethod
    def _arns(cls, value: dict[str, str]) -> dict[str, str]:
        for name, arn in value.items():
            if not SECRET.fullmatch(arn):
                raise ValueError(
                    f"{name} is not the ARN of a Secrets Manager secret (arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME)"
                )
        return value


def read(raw: object) -> Request | list[str]:
    """The request, or one line for every problem: the field, what is wrong, and what is allowed."""
    try:
        request = Request.model_validate(raw)
    except ValidationError as refused:
        return [_line(error) for error in refused.errors(include_url=False)]
    both = sorted(request.environment.keys() & request.secrets.keys())
    return [f"secrets: {', '.join(both)} also in environment; a variable has one value"] if both else request


def _line(error: Mapping[str, Any]) -> str:
    field = ".".join(str(part) for part in error["loc"]) or "request"
    if error["type"] == "extra_forbidden":
        near = difflib.get_close_matches(field, Request.model_fields, n=1)
        return f"{field}: there is no such field{f'; did you mean {near[0]}?' if near else ''} (allowed: {', '.join(Request.model_fields)})"
    if error["type"] == "missing":
        return f"{field}: is missing"
    given = error["input"]
    shown = (
        ""
        if isinstance(given, (dict, list))
        else f" (given: {json.dumps(given, ensure_ascii=False, default=str)[:80]})"
    )
    return f"{field}: {error['msg'].removeprefix('Value error, ')}{shown}"


def schema() -> dict[str, Any]:
    """JSON Schema of the request, for `docs/request.schema.json`."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Request.model_json_schema()}
