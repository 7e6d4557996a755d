"""What SageMaker's published model says of training jobs: the instance types, and whether a request fits it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from botocore.loaders import Loader
from botocore.model import ServiceModel, Shape
from botocore.validate import ParamValidator

from aws.service_models.shapes import reached

OPERATION = "CreateTrainingJob"
TYPES = "TrainingInstanceType"
ANYTHING = ".*"
"""As a pattern: of one line, strictly; what SageMaker does with line ends is for a warning."""


@cache
def _shape() -> Any:
    """The operation's input. The rest of the model, some 20 MB of it, is let go."""
    model = Loader().load_service_model("sagemaker", "service-2")
    wanted = model["operations"][OPERATION]["input"]
    cut = {"metadata": model["metadata"], "operations": {}, "shapes": reached(model["shapes"], wanted)}
    return ServiceModel(cut, "sagemaker").shape_for(wanted["shape"])


@cache
def instance_types() -> frozenset[str]:
    """Every type that SageMaker takes for a training, in whichever region."""
    resources = _shape().members["ResourceConfig"]
    return frozenset(resources.members["InstanceType"].enum)


def problems(arguments: dict[str, Any]) -> list[str]:
    """Where a request does not fit the model, by the names that AWS uses; botocore itself checks no maxima and no patterns."""
    report = ParamValidator().validate(arguments, _shape())
    if report.has_errors():
        return [line for line in report.generate_report().split("\n") if line]
    return list(_beyond(_shape(), arguments, ""))


def _beyond(shape: Shape, value: Any, where: str) -> Iterator[str]:
    found: Any = shape
    most = shape.metadata.get("max")
    if shape.type_name == "structure":
        for name, one in value.items():
            yield from _beyond(found.members[name], one, f"{where}.{name}".lstrip("."))
        return
    if most is not None and _size(value) > most:
        yield f"{where} has {_size(value):,}; allowed: up to {most:,}"
    if shape.type_name == "list":
        for number, one in enumerate(value):
            yield from _beyond(found.member, one, f"{where}.{number}")
    elif shape.type_name == "map":
        for name, one in value.items():
            yield from _beyond(found.key, name, f"{where}, a name")
            yield from _beyond(found.value, one, f"{where}.{name}")
    elif shape.type_name == "string":
        yield from _text(found, value, where)


def _size(value: Any) -> float:
    return value if isinstance(value, int | float) else len(value)


def _text(shape: Any, value: str, where: str) -> Iterator[str]:
    if shape.enum and value not in shape.enum:
        yield f"{where} is {value!r}; allowed: {', '.join(shape.enum[:10])} ..."
    pattern = shape.metadata.get("pattern", ANYTHING)
    if pattern != ANYTHING and (fits := _pattern(pattern)) and not fits.fullmatch(value):
        yield f"{where} is {value!r}; allowed: what fits {pattern}"


@cache
def _pattern(text: str) -> re.Pattern[str] | None:
    """None where Python cannot read the pattern: a few of them use Java's names of classes of letters."""
    try:
        return re.compile(text)
    except re.error:
        return None
