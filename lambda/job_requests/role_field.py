"""The field of a request that gives its nodes roles, each with a program, machines and a number of its own."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from contract.roles import RoleEnd
from job_requests import values
from job_requests.program import MOST_ARGUMENTS
from job_requests.values import Buying, Passable, one_of
from refusals.fields import read_whole

MOST_ROLES = 12
"""Their names together fit a tag."""
MOST_TYPES = 10
ROLE_NAME = r"^[a-z](_?[a-z0-9])*$"
MOST_NAME = 20
SHAPE = '{"name": "ps", "count": 2, "ends": "served"}'
ROLES_MAY_BE = f"a list of 1 to {MOST_ROLES} objects of name, count and more, as in {SHAPE}"
ROLE_MAY_BE = (
    f"name (a word of up to {MOST_NAME} lower-case letters, digits and single _ between them), count (a whole number from 1), ends (one of "
    f"{', '.join(RoleEnd)}), checkpoints (true or false), and what the request itself may say of command, arguments, image, "
    "instance_types and market"
)
INHERITED = ("command", "arguments", "image", "instance_types", "market")
"""What a role says in place of the request."""
SAME = "the request's without it"


class RoleField(BaseModel):
    """Some nodes of the job, and what they do."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: Annotated[str, Field(pattern=ROLE_NAME, max_length=MOST_NAME)] = Field(
        description="What the role is called in TF_CONFIG, CLUSTER_SPEC and ROLE.", examples=["chief", "worker", "ps"]
    )
    count: Annotated[int, BeforeValidator(read_whole)] = Field(
        default=1, ge=1, description="Nodes of the role. Ranks go by the order of roles."
    )
    command: values.CommandWords = Field(
        default_factory=list, min_length=1, max_length=MOST_ARGUMENTS, description=f"As the request's; {SAME}."
    )
    arguments: list[Passable] = Field(
        default_factory=list,
        min_length=1,
        max_length=MOST_ARGUMENTS,
        description="Of the command or of the image's entry point; the request's where the role has neither command nor arguments.",
    )
    image: values.ContainerName | None = Field(default=None, description=f"As the request's; {SAME}.")
    instance_types: list[values.TypeName] = Field(
        default_factory=list,
        min_length=1,
        max_length=MOST_TYPES,
        description=f"As the request's; {SAME}.",
        json_schema_extra={"uniqueItems": True},
    )
    market: Annotated[Buying | None, BeforeValidator(one_of(Buying, "market"))] = Field(
        default=None, description=f"As the request's; {SAME}."
    )
    ends: Annotated[RoleEnd, BeforeValidator(one_of(RoleEnd, "known end"))] = Field(
        default=RoleEnd.JOB,
        description=(
            "What its end means: job (the job is done once all nodes of such roles have ended with 0), served (it is stopped then; if its "
            "command ends before that, the attempt fails), freely (it is stopped then, and may end earlier with any exit code) or alone "
            "(it may fail, and is waited for)."
        ),
    )
    checkpoints: bool | None = Field(
        default=None,
        description=(
            "Whether checkpoint_scope shards wants files of each of its nodes; without it, of the roles that end the job. Where a role "
            "that is served says false, the last checkpoint of a job that is done waits for no files of it."
        ),
    )

    @field_validator("instance_types")
    @classmethod
    def _different(cls, value: list[str]) -> list[str]:
        if twice := sorted({name for name in value if value.count(name) > 1}):
            raise ValueError(f"{', '.join(twice)} is named more than once")
        return value

    @field_validator("command")
    @classmethod
    def _program(cls, value: list[str]) -> list[str]:
        if value and not value[0].strip():
            raise ValueError("its first word is blank; allowed: the program to run, then its arguments")
        return value
