"""The input of the Grid machine, as a person pastes it into the console."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from contract.environments import GridLimits
from contract.grid import Backend
from contract.search import STARTED_BY
from grid_plan import reading
from grid_plan.cluster_lines import OWN
from grid_plan.columns import TrainingSpec
from grid_plan.job_columns import JOB_ONLY, add_job_fields
from grid_plan.limits import MOST_SWEEP, allowed
from grid_plan.statements import EXAMPLE, OF_SQL, find_mistake
from refusals.addresses import Address
from refusals.fields import MOST_ADDRESS, OWNER_MAY_BE, Owner, without_nul
from refusals.texts import list_errors, validate
from refusals.wording import plain

MOST_QUERY = 20_000
SOURCES = ("manifest", "query")
"""Fields that say where the lines are: an input has one of them."""
ALLOWED = {
    "manifest": "s3://bucket/key of a manifest: CSV or JSON Lines",
    "query": f"1 to {MOST_QUERY:,} characters of SQL: one statement whose rows are the lines of a manifest, as in {EXAMPLE}",
    "defaults": "an object of the fields of a manifest's line, which a line without them gets",
    "sweep": f"an object of hyperparameters and lists of 1 to {MOST_SWEEP:,} different values",
    "max_cost_usd": "a number above 0: a plan that could cost more is refused",
    "owner": OWNER_MAY_BE,
    "allow_duplicates": "true or false",
}
"""Field to what it may be."""
A_FIELD_OF_JOBS = "as in the request of a job"
NO_SOURCE = f"manifest: is missing; allowed: {ALLOWED['manifest']}, or query in its place"
NO_CATALOGUE = "query: this deployment has no catalogue; allowed: manifest, or catalogue true in cdk.json"
TWO_SOURCES = "query: stands beside manifest; allowed: one of them"


def _manifest(value: str) -> str:
    address = Address.parse(value)
    if not address.key or address.key.endswith("/"):
        raise ValueError(f"{plain(value)} names no object")
    if address.key.lower().endswith(OF_SQL):
        raise ValueError(
            f"{plain(value)} names a file of SQL; allowed: {ALLOWED['manifest']}, or query with the SQL itself"
        )
    return value


def _statement(value: str) -> str:
    if mistake := find_mistake(value):
        raise ValueError(mistake)
    return value


class GridRequest(BaseModel):
    """Which manifest, or which query, to carry out, and what holds for all its lines."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, title="Trainyard grid")

    manifest: Annotated[str, Field(max_length=MOST_ADDRESS), AfterValidator(_manifest)] = Field(
        default="",
        description="S3 address of the manifest: CSV (`region,s3_location`, or with a header) or JSON Lines.",
        examples=["s3://my-bucket/uploads/manifest.csv"],
    )
    query: Annotated[
        str, Field(min_length=1, max_length=MOST_QUERY), AfterValidator(without_nul), AfterValidator(_statement)
    ] = Field(
        default="",
        description="SQL in the place of a manifest: the catalogue's rows are the lines. Needs `catalogue` in cdk.json.",
        examples=["select region, address as data from data_sets where campaign = 'drive-eu'"],
    )
    defaults: TrainingSpec = Field(
        default=TrainingSpec(),
        description="Fields of a manifest's line, for every line that does not set them itself.",
        examples=[{"image": "images:v1", "instance_type": "ml.g5.xlarge", "max_hours": 4}],
    )
    sweep: dict[str, list[Any]] = Field(
        default_factory=dict,
        description="Hyperparameters with lists of values: a training for every combination of those that a line does not set itself.",
        examples=[{"lr": [0.1, 0.01]}],
    )
    max_cost_usd: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="Refuses a plan whose trainings, all to their time-outs and at on-demand prices, could cost more.",
    )
    owner: Owner = Field(default="", description="Whom to ask; a tag on every training, and a column of the bill.")
    allow_duplicates: bool = Field(default=False, description="Train equal lines as often as they appear.")


@dataclass(frozen=True, slots=True)
class GivenDefaults:
    """The defaults as a person wrote them: those of lines that run on clusters of our own are checked with each line."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    """Under the fields' own names."""
    wrong: frozenset[str] = frozenset()
    """Names of those that are wrong, so that no line is blamed for lacking them."""
    of_sagemaker: tuple[str, ...] = ()
    """What is wrong with them for a line of SageMaker, where their backend is another."""


def read(raw: object, limits: GridLimits) -> tuple[GridRequest, GivenDefaults, list[str]]:
    """Returns the input, its defaults as they were given, and a line per problem."""
    outer = dict(raw) if isinstance(raw, Mapping) else raw
    problems, given = list[str](), GivenDefaults()
    if isinstance(outer, dict):
        outer.pop(STARTED_BY, None)  # Step Functions' own, for any input; that of a search's round has it
        defaults, sweep = outer.pop("defaults", None), outer.get("sweep")
        if isinstance(sweep, Mapping):
            del outer["sweep"]
    else:
        defaults = sweep = None
    asked, problems = _outer(outer)
    may_be = allowed(limits)
    base = TrainingSpec()
    if isinstance(defaults, Mapping):
        known, both = reading.rename(defaults)
        base, found = reading.read({name: one for name, one in known.items() if name not in JOB_ONLY}, may_be)
        of_jobs = [*list_errors(known, JOB_ONLY)]  # every other problem of theirs is said with a line that has them
        found += reading.describe_errors(of_jobs, dict.fromkeys(JOB_ONLY, A_FIELD_OF_JOBS))
        found = [f"defaults.{one}" for one in found]
        others = list[str]()
        if base.backend == Backend.EC2.value:  # its lines say what is wrong with the others, in a request's words
            others = [one for one in found if re.split("[.:]", one)[1] not in OWN]
        problems += [*(f"defaults.{one}" for one in both), *(one for one in found if one not in others)]
        wrong = frozenset(name for name in known if name not in JOB_ONLY and getattr(base, str(name), None) is None)
        given = GivenDefaults(known, wrong, tuple(others))
        if base.sweep is not None:
            problems.append("defaults.sweep: is a field of the input itself; allowed: sweep beside defaults")
    elif defaults is not None:
        problems.append(f"defaults: {_what(defaults)} is not an object; allowed: {ALLOWED['defaults']}")
    if isinstance(sweep, Mapping):
        swept, found = reading.read({"sweep": sweep}, may_be)
        problems += found
        asked = asked.model_copy(update={"sweep": swept.sweep or {}})
    return asked.model_copy(update={"defaults": base}), given, problems


def _what(value: object) -> str:
    return "a list" if isinstance(value, list) else plain(str(value))


def _outer(raw: object) -> tuple[GridRequest, list[str]]:
    """Reads the fields without their defaults; wrong fields are empty, and both sources where not exactly one is given."""
    sources = [name for name in SOURCES if name in raw] if isinstance(raw, Mapping) else SOURCES[:1]
    asked, problems = _fields(raw)
    if len(sources) == 1:
        return asked, problems
    problems.append(NO_SOURCE if not sources else TWO_SOURCES)
    return asked.model_copy(update=dict.fromkeys(SOURCES, "")), problems


def _fields(raw: object) -> tuple[GridRequest, list[str]]:
    request, errors = validate(GridRequest, raw)
    if request is not None:
        return request, []
    wrong = {str(error["loc"][0]) for error in errors if error["loc"]}
    fields = raw if isinstance(raw, Mapping) and wrong else {}
    right = {name: fields[name] for name in GridRequest.model_fields if name in fields and name not in wrong}
    return GridRequest.model_validate(right), reading.describe_errors(errors, ALLOWED)


def schema() -> dict[str, Any]:
    """JSON Schema of the input, for `docs/reference/grid.schema.json`."""
    found = GridRequest.model_json_schema()
    add_job_fields(found["$defs"]["TrainingSpec"], found)
    found["oneOf"] = [{"required": [name]} for name in SOURCES]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}
