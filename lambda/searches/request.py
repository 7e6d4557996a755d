"""The input of the Search machine, as a person pastes it into the console."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from contract.metric_values import write_expression
from contract.search import MOST_NAME, MOST_ROUNDS, MOST_TRIALS, PATTERN, Direction
from grid_plan.columns import Closed, Hyperparameter, sent
from grid_plan.limits import MOST_EXPRESSION, MOST_VALUE
from refusals.expressions import find_fault, find_misreading
from refusals.fields import OWNER_MAY_BE, Owner, read_whole, without_nul
from refusals.texts import validate
from refusals.wording import lines, plain, shown, what
from searches.parameter_words import is_conditional, suggest_form, suggest_parameter

MOST_PARAMETERS, MOST_CHOICES, MOST_PLACES = 30, 1000, 100
MOST_NUMBER = 2**53
"""Up to here every whole number is a float."""
MOST_FLOAT = 1e300
MOST_STEPS = 1_000_000
NARROWEST, FINEST = 1e-9, 1e-6
"""Of a range's largest number: below these a float's last digits decide whether a value is in the range, or on a step."""
MOST_TOGETHER = 1_000
"""Choices of all parameters together: with 30 of 1,000 the sampler takes a minute and a gigabyte for one round."""
"""The most steps of a range: Optuna counts with decimals of 28 digits."""
PARAMETER = (
    'one of {"float": [low, high]}, {"int": [low, high]} and {"choice": [values]}; ranges with "log": true or "step"'
)
PRUNER = (
    "pruner: is not here; a trial trains to its end, because its progress lies with its node alone and no second place keeps it; allowed: "
    "left out, with max_hours in the template"
)
TEMPLATE = "template"
UNCONDITIONAL = "every trial has all parameters, whatever the others are (no conditional spaces)"
NOT_HERE = f"is not here: {UNCONDITIONAL}"
RESUMED = ("trials", "parallel", "max_cost_usd", "patience", "owner")
"""Fields that may be given anew beside `resume`."""
A_SEARCH = f"the name of another search of this deployment, up to {MOST_NAME} letters, digits, _ and -"
ALLOWED = {
    "template": "a line of a manifest, as an object",
    "places": f"1 to {MOST_PLACES} objects of fields of a line, as in "
    '{"region": "eu-central-1", "data": "s3://bucket/folder/"}; the trials take them in turn',
    "search": f"an object of 1 to {MOST_PARAMETERS} hyperparameters, each {PARAMETER}",
    "objective": 'an object as in {"metric": "accuracy", "direction": "maximize"}',
    "trials": f"a whole number from 1 to {MOST_TRIALS:,}",
    "parallel": "a whole number from 1: the trials of a round",
    "max_cost_usd": "a number above 0: the search never costs more",
    "sampler": "tpe, random or grid",
    "seed": "a whole number from 0 to 4,294,967,295",
    "begin_with": "a list of objects of parameters and values, which are tried first",
    "warm_start": A_SEARCH,
    "patience": "a whole number from 1: the search ends after so many rounds without a better trial",
    "resume": f"{A_SEARCH}, beside {', '.join(RESUMED)} only",
    "owner": OWNER_MAY_BE,
}
"""Field to what it may be."""
ENTRIES = {"search": PARAMETER, "objective": ALLOWED["objective"]}


class Sampler(str, Enum):
    """What chooses the parameters of a trial."""

    TPE = "tpe"
    RANDOM = "random"
    GRID = "grid"


Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False, ge=-MOST_FLOAT, le=MOST_FLOAT)]
Whole: TypeAlias = Annotated[int, BeforeValidator(read_whole), Field(ge=-MOST_NUMBER, le=MOST_NUMBER)]


def _scalar(given: Any) -> Any:
    if isinstance(given, dict):
        raise ValueError(f"an object is no value of its own: {UNCONDITIONAL}; allowed: texts, numbers, true and false")
    if not isinstance(given, str | bool | int | float):
        raise ValueError(f"{what(given)} is no value of its own; allowed: texts, numbers, true and false")
    if isinstance(given, float) and not math.isfinite(given):
        raise ValueError(f"{shown(given)} is not a finite number; allowed: numbers that JSON has")
    if isinstance(given, int | float) and abs(given) > MOST_FLOAT:
        raise ValueError(f"{shown(given)} is beyond numbers; allowed: from -{MOST_FLOAT:g} to {MOST_FLOAT:g}")
    text = without_nul(sent(given))
    if len(text) > MOST_VALUE:
        raise ValueError(f"has {len(text):,} characters; allowed: up to {MOST_VALUE:,}")
    return given


Choice: TypeAlias = Annotated[Any, AfterValidator(_scalar)]


def _range(given: list[Any]) -> list[Any]:
    if len(given) != 2:
        numbers = "1 number" if len(given) == 1 else f"{len(given):,} numbers"
        raise ValueError(f"has {numbers}; allowed: two, the lowest and the highest")
    if given[0] >= given[1]:
        raise ValueError(
            f"{shown(given)} is an empty range; allowed: a lowest number below the highest (one value belongs in "
            "template.hyperparameters)"
        )
    return given


def _choices(given: list[Any]) -> list[Any]:
    if not 2 <= len(given) <= MOST_CHOICES:
        values = "1 value" if len(given) == 1 else f"{len(given):,} values"
        raise ValueError(f"has {values}; allowed: 2 to {MOST_CHOICES:,}")
    for place, one in enumerate(given):
        if one in given[:place]:
            raise ValueError(f"has {shown(one)} twice; allowed: different values")
    return given


def _size(span: Sequence[float]) -> float:
    return max(map(abs, span))


class Parameter(Closed):
    """The values that one hyperparameter may have."""

    float_: Annotated[list[Number], AfterValidator(_range)] | None = Field(default=None, alias="float")
    int_: Annotated[list[Whole], AfterValidator(_range)] | None = Field(default=None, alias="int")
    choice: Annotated[list[Choice], AfterValidator(_choices)] | None = Field(default=None)
    log: bool = Field(default=False, description="Each power of ten is as likely as the next; for ranges above 0.")
    step: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, description="Only the lowest number and every further step."
    )

    @model_validator(mode="after")
    def _fit(self) -> Parameter:
        span = self.float_ or self.int_
        if sum(one is not None for one in (self.float_, self.int_, self.choice)) != 1:
            raise ValueError(f"names none or several of float, int and choice; allowed: {PARAMETER}")
        if span is None and (self.log or self.step):
            raise ValueError("has log or step beside choice; allowed: choice alone")
        if self.log and span and span[0] <= 0:
            raise ValueError(f"has log, and begins at {shown(span[0])}; allowed: log for ranges above 0")
        if self.log and self.step:
            raise ValueError("has log and step; allowed: one of them")
        if self.float_ and self.float_[1] - self.float_[0] < max(NARROWEST * _size(self.float_), 1 / MOST_FLOAT):
            raise ValueError(f"{shown(self.float_)} is a range too narrow for floats; allowed: a wider one, or choice")
        if self.float_ and self.step and self.step < FINEST * _size(self.float_):
            raise ValueError(
                f"has a step of {self.step:g}, too small beside its numbers; allowed: at least {FINEST:g} of the largest"
            )
        if self.step and span and self.step > span[1] - span[0]:
            raise ValueError(f"has a step of {self.step:g}, which is longer than the range; allowed: a shorter one")
        if self.step and span and (span[1] - span[0]) / self.step > MOST_STEPS:
            raise ValueError(
                f"has a step of {self.step:g}, too small for the range; allowed: up to {MOST_STEPS:,} steps"
            )
        if self.step and self.int_ and not float(self.step).is_integer():
            raise ValueError(f"has a step of {self.step:g} between whole numbers; allowed: a whole step")
        return self


class Objective(Closed):
    """What is to be made small, or large."""

    metric: Annotated[str, Field(min_length=1, max_length=255)] = Field(
        description="Name of a metric of the template; metric with the backend ec2.", examples=["accuracy"]
    )
    direction: Annotated[Direction, Field(strict=False)] = Field(description="minimize or maximize.")


class SearchRequest(Closed):
    """Which trainings to try, and what makes one better than another."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, title="Trainyard search")

    template: dict[str, Any] = Field(
        description="A line of a manifest, which every trial is; its hyperparameters are the same in all trials.",
        examples=[
            {
                "image": "images:v1",
                "instance_type": "ml.g5.xlarge",
                "metrics": {"accuracy": write_expression("accuracy")},
            }
        ],
    )
    places: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MOST_PLACES)] | None = Field(
        default=None,
        description="Fields of a line that the trials have in turn beside those of the template, such as regions with their data.",
        examples=[[{"region": "eu-central-1", "data": "s3://my-data/train/"}]],
    )
    search: Annotated[dict[Hyperparameter, Parameter], Field(min_length=1, max_length=MOST_PARAMETERS)] = Field(
        description="Hyperparameter to the values that it may have.",
        examples=[
            {"lr": {"float": [1e-5, 1e-1], "log": True}, "depth": {"int": [2, 8]}, "act": {"choice": ["relu", "gelu"]}}
        ],
    )
    objective: Objective = Field(examples=[{"metric": "accuracy", "direction": "maximize"}])
    trials: Annotated[int, BeforeValidator(read_whole), Field(ge=1, le=MOST_TRIALS)] = Field(
        description="How many trainings there are in all.", examples=[40]
    )
    parallel: Annotated[int, BeforeValidator(read_whole), Field(ge=1)] = Field(
        default=4,
        description="Trials of a round, which train at the same time; the next round is asked when all have ended.",
    )
    max_cost_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None,
        description="Trials start only while all of them, to their time-outs and at on-demand prices, cost no more together.",
    )
    sampler: Annotated[Sampler, Field(strict=False)] = Field(
        default=Sampler.TPE,
        description="tpe (learns from earlier rounds), random, or grid (every combination in turn).",
    )
    seed: Annotated[int, BeforeValidator(read_whole), Field(ge=0, lt=2**32)] = Field(
        default=0, description="Equal seeds and equal results make equal questions."
    )
    begin_with: Annotated[list[dict[Hyperparameter, Choice]], Field(max_length=MOST_TRIALS)] = Field(
        default_factory=list,
        description="Parameters that are tried first; the sampler adds those that an entry lacks.",
        examples=[[{"lr": 0.001, "depth": 4}]],
    )
    warm_start: Annotated[str, Field(pattern=f"^{PATTERN.pattern}$")] | None = Field(
        default=None, description="A search whose trials the sampler knows too; they cost and count nothing here."
    )
    patience: Annotated[int, BeforeValidator(read_whole), Field(ge=1)] | None = Field(
        default=None, description="Ends the search after so many rounds without a better trial."
    )
    resume: Annotated[str, Field(pattern=f"^{PATTERN.pattern}$")] | None = Field(
        default=None, description="A search that ended, which this one goes on with; its trials and its cost count."
    )
    owner: Owner = Field(default="", description="Whom to ask; a tag on every training, and a column of the bill.")


PLACEHOLDERS: dict[str, Any] = {
    "template": {},
    "search": {},
    "objective": {"metric": "none", "direction": Direction.MINIMIZE.value},
    "trials": 1,
}
"""Stand for required fields that are wrong, so that the others can be checked."""


def read(raw: object) -> tuple[SearchRequest, frozenset[str], list[str]]:
    """Returns the input without its wrong fields, the names of those, and a line per problem."""
    problems = list[str]()
    given: Any = {name: one for name, one in raw.items() if one is not None} if isinstance(raw, Mapping) else raw
    if isinstance(given, dict) and given.pop("pruner", None) is not None:
        problems.append(PRUNER)
    wanted, errors = validate(SearchRequest, given)
    wrong = frozenset[str]()
    if wanted is None:
        problems += lines(errors, ALLOWED, ENTRIES, word=_word_parameter)
        wanted, wrong = _keep_right(given, errors)
    return wanted, wrong, [*problems, *_list_conflicts(wanted, wrong, _name_parameters(given))]


def list_problems(raw: Mapping[str, Any]) -> list[str]:
    """Lists what is wrong with an input, as far as it can be known without the search that it resumes, which has what it lacks."""
    problems = read(raw)[2]
    if raw.get("resume") is None:
        return problems
    return [one for one in problems if not one.partition(": ")[2].startswith("is missing;")]


def _keep_right(given: Any, errors: Sequence[Any]) -> tuple[SearchRequest, frozenset[str]]:
    """Returns the input with its right fields, and of its parameters the right ones; and the names of the wrong fields."""
    wrong = frozenset(str(error["loc"][0]) for error in errors if error["loc"]) or frozenset(PLACEHOLDERS)
    right = (
        {name: one for name, one in given.items() if name in ALLOWED and name not in wrong}
        if isinstance(given, dict)
        else {}
    )
    if "search" in wrong and isinstance(given, dict) and isinstance(given.get("search"), dict):
        bad = {error["loc"][1] for error in errors if error["loc"][:1] == ("search",) and len(error["loc"]) > 1}
        right["search"] = {name: one for name, one in given["search"].items() if name not in bad}
    stand_ins = {name: one for name, one in PLACEHOLDERS.items() if name not in right}
    search = {name: Parameter.model_validate(one) for name, one in right.pop("search", {}).items()}
    base = SearchRequest.model_validate({**stand_ins, **right, "search": {"any": {"int": [0, 1]}}})
    return base.model_copy(update={"search": search}), wrong


def _word_parameter(error: Mapping[str, Any]) -> str:
    """Words a field of a parameter that there is not, and what stands in the place of a parameter; empty for any other error."""
    where, given = ".".join(plain(str(part)) for part in error["loc"]), error["input"]
    if error["loc"][:1] != ("search",):
        return ""
    if error["type"] == "model_type" and len(error["loc"]) == 2:
        hint = suggest_parameter(str(error["loc"][1]), given)
        return f"{where}: {what(given)} is not an object{hint}; allowed: {PARAMETER}"
    if error["type"] != "extra_forbidden" or len(error["loc"]) != 3:
        return ""
    if is_conditional(str(error["loc"][2])):
        return f"{where}: {NOT_HERE}; allowed: {PARAMETER}"
    return f"{where}: there is no such field{suggest_form(str(error['loc'][2]), given)}; allowed: {PARAMETER}"


def _name_parameters(given: Any) -> frozenset[str]:
    """Names the parameters, those with wrong values too."""
    search = given.get("search") if isinstance(given, dict) else None
    return frozenset(map(str, search)) if isinstance(search, Mapping) else frozenset()


def _list_conflicts(wanted: SearchRequest, wrong: frozenset[str], parameters: frozenset[str]) -> list[str]:
    """Lists what does not fit together."""
    problems = list[str]()
    rounds = -(-wanted.trials // wanted.parallel)
    if rounds > MOST_ROUNDS and not {"trials", "parallel"} & wrong:
        problems.append(
            f"parallel: {wanted.parallel} makes {rounds:,} rounds of {wanted.trials:,} trials; allowed: at least "
            f"{-(-wanted.trials // MOST_ROUNDS)}, which makes no more than {MOST_ROUNDS:,} (an execution's history holds no more)"
        )
    if wanted.sampler is Sampler.GRID:
        problems += [
            f"search.{plain(name)}: has no steps, and the sampler grid tries every value; allowed: step, int or choice"
            for name, one in wanted.search.items()
            if one.float_ and one.step is None
        ]
        whole = [one if one.keys() == wanted.search.keys() else None for one in wanted.begin_with]
        problems += [
            f"begin_with.{place}: is the same as begin_with.{whole.index(one)}; allowed: each once with the sampler grid"
            for place, one in enumerate(whole)
            if one is not None and one in whole[:place]
        ]
    if len(wanted.begin_with) > wanted.trials and "trials" not in wrong:
        problems.append(f"begin_with: has {len(wanted.begin_with):,} entries; allowed: up to trials, {wanted.trials:,}")
    choices = sum(len(one.choice or ()) for one in wanted.search.values())
    if choices > MOST_TOGETHER:
        problems.append(
            f"search: has {choices:,} choices in all; allowed: up to {MOST_TOGETHER:,} of all hyperparameters together"
        )
    for where, fields in list_fragments(wanted):
        if fields.get("checkpoint") is not None:
            problems.append(
                f"{where}.checkpoint: would be that of several trials, each of which goes on from the one before; allowed: left out, and "
                "each has one of its own"
            )
        own = fields.get("hyperparameters")
        if isinstance(own, Mapping):
            both = [str(name) for name in own if name in parameters]
            problems += [
                f"search.{plain(name)}: {where}.hyperparameters sets it too; allowed: one of them" for name in both
            ]
        elif own is not None:
            problems.append(
                f"{where}.hyperparameters: {what(own)} is not an object; allowed: an object of names and values"
            )
        if own is not None and where != TEMPLATE:
            problems.append(f"{where}.hyperparameters: would differ between places; allowed: in the template")
        problems += [
            f"{where}.metrics.{plain(name)}: {fault}"
            for name, one in _list_metrics(fields)
            if (fault := find_fault(one))
        ]
        if fields.get("sweep") is not None:
            problems.append(f"{where}.sweep: makes several trainings of a trial; allowed: search")
    return problems


def list_warnings(wanted: SearchRequest) -> list[str]:
    """Lists what trials would misread of what their trainings print."""
    every = ((where, *one) for where, fields in list_fragments(wanted) for one in _list_metrics(fields))
    return [
        f"{where}.metrics.{plain(name)}: {misreading}"
        for where, name, one in every
        if not find_fault(one) and (misreading := find_misreading(one))
    ]


def _list_metrics(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns the names and expressions of metrics, without those that Plan refuses for their form."""
    metrics = fields.get("metrics")
    given = metrics.items() if isinstance(metrics, Mapping) else ()
    return [(str(name), one) for name, one in given if isinstance(one, str) and 0 < len(one) <= MOST_EXPRESSION]


def list_fragments(wanted: SearchRequest) -> list[tuple[str, Mapping[str, Any]]]:
    """Returns where fields of a line stand, and those fields."""
    return [(TEMPLATE, wanted.template), *((f"places.{place}", one) for place, one in enumerate(wanted.places or ()))]


def write_line(wanted: SearchRequest, number: int, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the line of a manifest that trains a trial; `number` counts the search's trials from 0."""
    turn = wanted.places[number % len(wanted.places)] if wanted.places else {}
    own = wanted.template.get("hyperparameters")
    return {**wanted.template, **turn, "hyperparameters": {**(own if isinstance(own, Mapping) else {}), **parameters}}


def schema() -> dict[str, Any]:
    """JSON Schema of the input, for `docs/reference/search.schema.json`."""
    found = SearchRequest.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}
