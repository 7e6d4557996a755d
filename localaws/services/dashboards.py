"""CloudWatch dashboards: moto keeps any JSON; here a body is held to the documented structure, and stacks delete their dashboards.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from moto.cloudwatch.exceptions import DashboardInvalidInputError
from moto.cloudwatch.models import CloudWatchBackend, Dashboard

if TYPE_CHECKING:
    from localaws.server import LocalAws

NAME = re.compile(r"[A-Za-z0-9_-]{1,255}")
COLUMNS, MOST_WIDGETS, MOST_METRICS, MOST_OF_WIDGET, MOST_ALARMS = 24, 500, 2500, 500, 100
OPTIONAL = frozenset({"type", "x", "y", "width", "height", "properties"})
KINDS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "text": (frozenset({"markdown"}), frozenset({"background"})),
    "alarm": (frozenset({"alarms"}), frozenset({"title", "sortBy", "states"})),
    "log": (frozenset({"query", "region"}), frozenset({"title", "view", "accountId", "queryLanguage"})),
    "metric": (
        frozenset({"region"}),
        frozenset(
            {"metrics", "annotations", "title", "view", "stacked", "stat", "period", "yAxis", "legend", "liveData"}
            | {
                "accountId",
                "start",
                "end",
                "setPeriodToTimeRange",
                "singleValueFullPrecision",
                "sparkline",
                "timezone",
                "labels",
                "table",
            }
        ),
    ),
}
"""Type of a widget to the properties that it must and may have."""
OF_A_METRIC = frozenset(
    {"expression", "id", "label", "stat", "period", "color", "yAxis", "visible", "region", "accountId"}
)


def install(aws: LocalAws) -> None:
    aws.wrap(CloudWatchBackend, "put_dashboard", _put)
    aws.patch(Dashboard, "physical_resource_id", property(lambda dashboard: dashboard.name))


def _put(original: Any, backend: Any, name: str, body: str) -> Any:
    if problems := list(list_problems(name, body)):
        raise DashboardInvalidInputError("; ".join(problems))
    return original(backend, name, body)


def list_problems(name: str, body: str) -> Iterator[str]:
    """Yields what CloudWatch refuses of a dashboard, or would show as a broken widget."""
    if not NAME.fullmatch(name):
        yield f"the name {name!r} has other characters than A-Z, a-z, 0-9, - and _"
    try:
        widgets = json.loads(body)["widgets"]
    except (ValueError, KeyError, TypeError):
        yield "the body is no JSON object with widgets"
        return
    if not isinstance(widgets, list) or len(widgets) > MOST_WIDGETS:
        yield f"widgets is no list of up to {MOST_WIDGETS}"
        return
    count = 0
    for number, widget in enumerate(widgets):
        if not isinstance(widget, dict) or not isinstance(widget.get("properties"), dict):
            yield f"widgets.{number} has no properties"
            continue
        yield from (f"widgets.{number}{problem}" for problem in _list_of_widget(widget))
        count += len(widget["properties"].get("metrics") or ())
    if count > MOST_METRICS:
        yield f"the dashboard has {count} metrics, more than {MOST_METRICS}"


def _list_of_widget(widget: Mapping[str, Any]) -> Iterator[str]:
    kind, properties = widget.get("type"), widget["properties"]
    if kind not in KINDS:
        yield f".type is {kind!r}"
        return
    yield from (f".{name} is not known" for name in widget.keys() - OPTIONAL)
    if not 0 <= widget.get("x", 0) < COLUMNS or widget.get("x", 0) + widget.get("width", 6) > COLUMNS:
        yield f" does not fit the {COLUMNS} columns"
    if not 1 <= widget.get("height", 6) <= 1000 or widget.get("width", 6) < 1 or widget.get("y", 0) < 0:
        yield " has no size or place"
    needed, further = KINDS[kind]
    yield from (f".properties.{name} is missing" for name in needed - properties.keys())
    yield from (f".properties.{name} is not known" for name in properties.keys() - needed - further)
    if kind == "alarm" and not 0 < len(properties.get("alarms") or ()) <= MOST_ALARMS:
        yield f".properties.alarms is no list of 1 to {MOST_ALARMS}"
    if kind == "metric":
        yield from (f".properties{problem}" for problem in _list_of_metrics(properties))


def _list_of_metrics(properties: Mapping[str, Any]) -> Iterator[str]:
    rows = properties.get("metrics")
    if rows is None and not (properties.get("annotations") or {}).get("alarms"):
        yield " has neither metrics nor an alarm"
    for number, row in enumerate(rows or ()):
        *words, options = row if row and isinstance(row[-1], dict) else [*row, {}]
        where = f".metrics.{number}"
        if not all(isinstance(word, str) and word for word in words):
            yield f"{where} has a word that is no text"
        yield from (f"{where}.{name} is not known" for name in options.keys() - OF_A_METRIC)
        if "expression" in options:
            if words:
                yield f"{where} has an expression and a metric"
        elif len(words) < 2 or len(words) % 2:
            yield f"{where} is no namespace and metric with pairs of dimensions"
    if len(rows or ()) > MOST_OF_WIDGET:
        yield f".metrics has more than {MOST_OF_WIDGET}"
