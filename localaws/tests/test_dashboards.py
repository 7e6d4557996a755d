"""Dashboards and saved queries: what CloudWatch refuses is refused, and a stack takes both away again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localaws.conditions import Conditions
from localaws.server import LocalAws
from localaws.services.dashboards import list_problems

pytestmark = pytest.mark.rehearsal
METRIC = ["AWS/Lambda", "Errors", "FunctionName", "f"]
GRAPH: dict[str, Any] = {"type": "metric", "properties": {"region": "eu-central-1", "metrics": [METRIC]}}
TEXT: dict[str, Any] = {"type": "text", "properties": {"markdown": "# Hello"}}
QUERY = {"Name": "mine/last errors", "QueryString": "fields @message | limit 20", "LogGroupNames": ["/mine"]}


def graph(**properties: Any) -> dict[str, Any]:
    return {**GRAPH, "properties": {**GRAPH["properties"], **properties}}


def body(*widgets: Any) -> str:
    return json.dumps({"widgets": list(widgets)})


def template(text: str, query: dict[str, Any]) -> str:
    kinds = {
        "Page": ("AWS::CloudWatch::Dashboard", {"DashboardName": "page", "DashboardBody": text}),
        "Query": ("AWS::Logs::QueryDefinition", query),
    }
    resources = {name: {"Type": kind, "Properties": properties} for name, (kind, properties) in kinds.items()}
    return json.dumps({"Resources": resources})


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws(Conditions(speed=100), gaps=("cloudformation",)) as started:
        yield started


@pytest.mark.parametrize(
    "widget",
    [
        {},
        {"type": "metric"},
        {"type": "picture", "properties": {}},
        {**TEXT, "colour": "red"},
        {**TEXT, "x": 24},
        {**TEXT, "x": 12, "width": 13},
        {**TEXT, "height": 0},
        {"type": "text", "properties": {}},
        {"type": "text", "properties": {"markdown": "", "title": "no"}},
        {"type": "metric", "properties": {"metrics": [METRIC]}},
        {"type": "metric", "properties": {"region": "eu-central-1"}},
        {"type": "alarm", "properties": {"alarms": []}},
        {"type": "alarm", "properties": {"alarms": ["arn"] * 101}},
        graph(metrics=[["AWS/Lambda"]]),
        graph(metrics=[["AWS/Lambda", "Errors", "FunctionName"]]),
        graph(metrics=[["AWS/Lambda", "Errors", {"expresion": "x"}]]),
        graph(metrics=[["AWS/Lambda", "Errors", {"expression": "x"}]]),
        graph(metrics=[METRIC] * 501),
        graph(colour="red"),
    ],
)
def test_a_widget_that_cloudwatch_would_not_show_is_refused(widget: dict[str, Any]) -> None:
    assert list(list_problems("page", body(TEXT, widget)))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"widgets": 1}', body(*[TEXT] * 501)])
def test_a_body_that_is_none_is_refused(text: str) -> None:
    assert list(list_problems("page", text))


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a" * 256])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    assert list(list_problems(name, body(TEXT)))


def test_what_cloudwatch_shows_is_taken() -> None:
    searched = graph(metrics=[[{"expression": "SEARCH('x', 'Sum', 300)", "label": ""}]])
    alarms = {"type": "alarm", "properties": {"alarms": ["arn"], "title": "Alarms"}}
    assert list(list_problems("page", body(TEXT, GRAPH, searched, alarms))) == []


def test_a_dashboard_that_is_put_is_checked(aws: LocalAws) -> None:
    with pytest.raises(ClientError, match="InvalidParameterInput"):
        aws.client("cloudwatch", "eu-central-1").put_dashboard(DashboardName="wrong", DashboardBody=body({}))


def test_a_stack_makes_changes_and_deletes_both(aws: LocalAws) -> None:
    stacks = aws.client("cloudformation", "eu-central-1")
    pages, logs = aws.client("cloudwatch", "eu-central-1"), aws.client("logs", "eu-central-1")
    stacks.create_stack(StackName="page", TemplateBody=template(body(TEXT), QUERY))
    assert [one["DashboardName"] for one in pages.list_dashboards()["DashboardEntries"]] == ["page"]
    (query,) = logs.describe_query_definitions(queryDefinitionNamePrefix="mine/")["queryDefinitions"]
    assert (query["name"], query["logGroupNames"]) == (QUERY["Name"], ["/mine"])
    changed = {**QUERY, "QueryString": "fields @message | limit 5"}
    stacks.update_stack(StackName="page", TemplateBody=template(body(TEXT, GRAPH), changed))
    assert json.loads(pages.get_dashboard(DashboardName="page")["DashboardBody"])["widgets"] == [TEXT, GRAPH]
    (after,) = logs.describe_query_definitions()["queryDefinitions"]
    assert (after["queryDefinitionId"], after["queryString"]) == (query["queryDefinitionId"], changed["QueryString"])
    stacks.delete_stack(StackName="page")
    assert pages.list_dashboards()["DashboardEntries"] == []
    assert logs.describe_query_definitions()["queryDefinitions"] == []


@pytest.mark.parametrize("wrong", [{"name": ""}, {"name": "a" * 256}, {"queryString": "x" * 10_001}])
def test_a_query_beyond_its_limits_is_refused(aws: LocalAws, wrong: dict[str, str]) -> None:
    given = {"name": "a", "queryString": "fields @message", **wrong}
    with pytest.raises(Exception, match=r"Invalid|validation"):
        aws.client("logs", "eu-central-1").put_query_definition(**given)
