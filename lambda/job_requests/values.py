"""Reads the values of a request's fields, and says for refusals what each may be."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from contract import training
from contract.images import parsed
from contract.jobs import Market, NoProgress, Reaction, RetryPlan
from contract.limits import Limits
from contract.names import JOB_PATTERN, JOB_ROLE_PATTERN, MACHINE_IMAGE_PATTERN
from job_requests.shell import shell_syntax
from refusals.addresses import Address
from refusals.fields import MOST_ADDRESS, REGION, read_whole, without_nul
from refusals.wording import plain, shown, what

MOST_BYTES = 128_000
"""The most bytes of one argument, or of one variable's value: Linux takes 131,071, including the variable's name."""
STRINGS = f"strings of up to {MOST_BYTES:,} bytes"
AUTO = "auto"
"""In place of a list of regions: all training regions. In place of a number of processes: as many as the node's type has accelerators."""
MOST_PROCESSES = 1024
"""The most processes of one node."""
MOST_REGIONS = 30
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
SECRET = re.compile(r"arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]{1,512}")
INSTANCE_TYPE = r"^[a-z][a-z0-9-]{0,19}\.[a-z0-9-]{1,20}$"
ACCELERATORS = r"^[A-Za-z0-9][A-Za-z0-9 .-]{0,39}:[1-9][0-9]{0,2}$"
RESERVATION = r"^(cr-[0-9a-f]{8,17}|arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:[0-9]{12}:group/[A-Za-z0-9_./-]{1,300})$"
MACHINE_IMAGE = f"^{MACHINE_IMAGE_PATTERN.pattern}$"
JOB_ROLE = f"^{JOB_ROLE_PATTERN.pattern}$"
SOURCE_JOB = f"^(?:{JOB_PATTERN.pattern})$"
SHELL_SHOWN = 3
"""How many pieces of shell syntax a refusal names."""
MOST_RETRIES, MOST_EXIT_CODE = 100, 255
RETRIES_MAY_BE = (
    f"an object of times (a whole number from 1 to {MOST_RETRIES}) and, optionally, exit_codes (a list of different whole "
    f"numbers from 1 to {MOST_EXIT_CODE})"
)
LIST_SHOWN = 300
"""How many characters of the corrected command, as a list, a refusal shows."""
RESUME_MAY_BE = "the name of a job of this deployment that has ended and has committed a checkpoint"

LEAST_MINUTES, MOST_MINUTES = 0.01, 1440
"""The least and the most minutes between two commits of a checkpoint, and without progress."""


class Mode(str, Enum):
    """What a request says about EFA."""

    AUTO = "auto"
    """EFA for jobs of several nodes, on types that have it."""
    TRUE = "true"
    """EFA, or a refusal."""
    FALSE = "false"


@dataclass(frozen=True, slots=True)
class MayBe:
    """Says beside a field what it may be; a refusal ends with it."""

    words: str
    entry: str = ""
    """The same of one entry of a list or an object; empty for a field that has none."""
    limit: str = ""
    """Name of the deployment's limit that is the largest value; empty for a field without one."""

    def in_words(self, limits: Limits) -> str:
        """Returns what the field may be in this deployment."""
        return f"{self.words} to {self._most(limits)} (limits.{self.limit} in cdk.json)" if self.limit else self.words

    def is_above(self, value: object, limits: Limits) -> bool:
        """Whether the value is larger than the deployment's limit; None never is."""
        return bool(self.limit) and isinstance(value, int | float) and value > getattr(limits, self.limit)

    def _most(self, limits: Limits) -> str:
        most = getattr(limits, self.limit)
        return f"{most:g}" if isinstance(most, float) else str(most)


def read_words(value: object) -> object:
    """Splits a command given as text into words as a shell does; no shell ever runs it."""
    if not isinstance(value, str):
        return value
    try:
        split = shlex.split(value)
    except ValueError as problem:
        raise ValueError(
            f"cannot be split into words ({problem}); allowed: a list of strings, or words quoted as for a shell"
        ) from None
    if found := shell_syntax(value):
        rest = f" and {len(found) - SHELL_SHOWN} more" if len(found) > SHELL_SHOWN else ""
        form = json.dumps(["bash", "-c", value.strip()], ensure_ascii=False)
        raise ValueError(
            f"has shell syntax, and no shell runs the command: {' '.join(map(plain, found[:SHELL_SHOWN]))}{rest}; "
            f"allowed: {plain(form, LIST_SHOWN)}, or quotes around what the program must receive unchanged"
        )
    return split


def _passable(value: str) -> str:
    if (size := len(without_nul(value).encode())) > MOST_BYTES:
        raise ValueError(f"has {size:,} bytes")
    return value


def _address(value: str) -> str:
    Address.parse(value)
    return value


def _container(value: str) -> str:
    try:
        parsed(value)
    except ValueError as problem:
        raise ValueError(f"{plain(value)} {problem}") from None
    return value


def _variable(name: str) -> str:
    if not VARIABLE.fullmatch(name):
        raise ValueError("is not a variable name; allowed: up to 128 letters, digits and _, not beginning with a digit")
    if name in training.RESERVED:
        raise ValueError(f"is set by Trainyard; allowed: any name but {', '.join(sorted(training.RESERVED))}")
    return name


def one_of(kind: type[Enum], word: str) -> Callable[[object], object]:
    """Reads the text of a choice."""
    texts = {one.value: one for one in kind}

    def read(value: object) -> object:
        if isinstance(value, kind):
            return value
        if not isinstance(value, str) or value not in texts:
            raise ValueError(f"{what(value)} is not a {word}")
        return texts[value]

    return read


def read_regions(value: object) -> object:
    """Reads the word that stands for all regions as a list of none."""
    if value == AUTO:
        return []
    if not isinstance(value, list):
        raise ValueError(f"{what(value)} is neither {AUTO} nor a list")
    if not value:
        raise ValueError("is empty")
    return value


def read_retries(value: object) -> RetryPlan:
    """Reads how often the command may be run again, and after which of its exit codes. Names what is wrong first."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{what(value)} is not an object")
    if strange := sorted(map(str, value.keys() - {"times", "exit_codes"})):
        raise ValueError(f"has the unknown field {plain(strange[0])}")
    if "times" not in value:
        raise ValueError("times is missing")
    times = _within("times", value["times"], MOST_RETRIES)
    if "exit_codes" not in value:
        return RetryPlan(times=times)
    codes = value["exit_codes"]
    if not isinstance(codes, list):
        raise ValueError(f"exit_codes: {what(codes)} is not a list")
    if not codes:
        raise ValueError("exit_codes is empty (without it every exit code counts)")
    read = tuple(_within("exit_codes", code, MOST_EXIT_CODE) for code in codes)
    if twice := sorted({code for code in read if read.count(code) > 1}):
        raise ValueError(f"exit_codes: {', '.join(map(str, twice))} is named more than once")
    return RetryPlan(times=times, exit_codes=read)


def _within(where: str, value: object, most: int) -> int:
    """The whole number from 1 to `most` that is at `where` in a field."""
    try:
        return _read_number(value, most)
    except ValueError as problem:
        raise ValueError(f"{where}: {problem}") from None


def _read_number(value: object, most: int) -> int:
    """Reads a whole number from 1 to `most`."""
    value = read_whole(value)
    if not isinstance(value, int) or isinstance(value, bool):
        hint = " (numbers have no quotes)" if isinstance(value, str) else ""
        raise ValueError(f"{what(value)} is not a whole number{hint}")
    if not 1 <= value <= most:
        raise ValueError(f"{shown(value)} is too {'small' if value < 1 else 'large'}")
    return value


def read_processes(value: object) -> int:
    """Reads how many processes a node gets; 0 for `auto`, as the job has it."""
    if value == AUTO:
        return 0
    if isinstance(value, str) and not value.isdigit():
        raise ValueError(f"{what(value)} is neither {AUTO} nor a whole number")
    return _read_number(value, MOST_PROCESSES)


def read_efa(value: object) -> object:
    """Reads `auto`, true or false; anything else, text that says true included, is left to be rejected."""
    if isinstance(value, bool):
        return Mode.TRUE if value else Mode.FALSE
    return Mode.AUTO if value == Mode.AUTO.value else value


def _secret(arn: str) -> str:
    if not SECRET.fullmatch(arn):
        raise ValueError(f"{plain(arn)} is not the ARN of a secret")
    return arn


# A constraint makes pydantic check the characters: a bare `str` accepts half of a surrogate pair, which later fails to be written.
Passable = Annotated[str, Field(max_length=MOST_BYTES), AfterValidator(_passable)]
Location = Annotated[str, Field(max_length=MOST_ADDRESS), AfterValidator(_address)]
ContainerName = Annotated[str, Field(max_length=512), AfterValidator(_container)]
Variable = Annotated[str, AfterValidator(_variable)]
Secret = Annotated[str, AfterValidator(_secret)]
TypeName = Annotated[str, Field(pattern=INSTANCE_TYPE)]
Accelerators = Annotated[str, Field(pattern=ACCELERATORS)]
ReservationName = Annotated[str, Field(pattern=RESERVATION)]
SourceJob = Annotated[str, Field(pattern=SOURCE_JOB)]
MachineImageName = Annotated[str, Field(pattern=MACHINE_IMAGE, max_length=40)]
PresetName = Annotated[str, Field(max_length=40)]
JobRole = Annotated[str, Field(pattern=JOB_ROLE, max_length=20)]
TrainingRegion = Annotated[str, Field(pattern=REGION)]
TrainingRegions = Annotated[
    list[TrainingRegion] | None,
    Field(
        max_length=MOST_REGIONS,
        json_schema_extra={
            "anyOf": [
                {"type": "array", "items": {"type": "string", "pattern": REGION}, "minItems": 1, "uniqueItems": True},
                {"const": AUTO},
            ]
        },
    ),
    BeforeValidator(read_regions),
]
CommandWords = Annotated[
    list[Passable],
    Field(
        json_schema_extra={
            "anyOf": [{"type": "array", "items": {"type": "string"}, "minItems": 1}, {"type": "string", "minLength": 1}]
        }
    ),
    BeforeValidator(read_words),
]
Processes = Annotated[
    int,
    BeforeValidator(read_processes),
    WithJsonSchema({"anyOf": [{"const": AUTO}, {"type": "integer", "minimum": 1, "maximum": MOST_PROCESSES}]}),
]
EfaMode = Annotated[Mode, BeforeValidator(read_efa), WithJsonSchema({"enum": ["auto", True, False]})]


class Buying(str, Enum):
    """In which markets the nodes may be bought."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    SPOT_THEN_ON_DEMAND = "spot-then-on-demand"

    @property
    def markets(self) -> tuple[Market, ...]:
        """In the order in which they are tried."""
        if self is Buying.SPOT_THEN_ON_DEMAND:
            return (Market.SPOT, Market.ON_DEMAND)
        return (Market(self.value),)


Retries = Annotated[
    RetryPlan | None,
    BeforeValidator(read_retries),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {
                "times": {"type": "integer", "minimum": 1, "maximum": MOST_RETRIES},
                "exit_codes": {
                    "type": "array",
                    "items": {"type": "integer", "minimum": 1, "maximum": MOST_EXIT_CODE},
                    "minItems": 1,
                    "uniqueItems": True,
                },
            },
            "required": ["times"],
            "additionalProperties": False,
        }
    ),
]


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
        """What the job gets."""
        return NoProgress(minutes=self.minutes, then=self.then)
