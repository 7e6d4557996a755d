"""The dashboard shows what the product writes, in the right region, and binds no stack; without the setting there is none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import botocore.session
import pytest

from contract import metrics, names
from contract.links import Console
from localaws import limits
from localaws.services.dashboards import list_problems
from stacks.parts.saved_queries import MOST_GROUPS, OLD, REFUSED
from stacks.parts.widgets import LETTERS
from tests.stacks.synth import logical_id, only, plain, resources
from tools.configurations import AWAY, EVERYTHING, HOME, THREE
from tools.synthesis import ROOT, Synthesised, synthesise_once

OURS = {value for name, value in vars(metrics).items() if name.isupper() and isinstance(value, str)} - {
    metrics.DEPLOYMENT
}
AWS = {
    "AWS/States": {f"Executions{end}" for end in ("Started", "Succeeded", "Failed", "Aborted", "TimedOut")},
    "AWS/Lambda": {"Errors", "Throttles"},
    "AWS/SQS": {"ApproximateNumberOfMessagesVisible"},
}
"""Metrics of AWS's services that the dashboard reads."""
SEARCH = re.compile(r"SEARCH\('\{([\w/]+),(\w+)\} MetricName=\"(\w+)\"((?: \w+=[\w-]+)+)', '(Sum|Maximum)', 300\)")
MOST_BYTES = 51_200
"""Characters of a property that CloudFormation takes in a template of this size; the whole template may have 1 MB."""
QUERY, DASHBOARD = "AWS::Logs::QueryDefinition", "AWS::CloudWatch::Dashboard"


@pytest.fixture(scope="module")
def everything() -> Synthesised:
    return synthesise_once(**EVERYTHING, regions=THREE)


def body_of(deployment: Synthesised) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(plain(only(deployment.template("dashboard"), DASHBOARD)["DashboardBody"]))
    return found


def graphs(deployment: Synthesised) -> list[dict[str, Any]]:
    return [one["properties"] for one in body_of(deployment)["widgets"] if one["type"] == "metric"]


def rows(deployment: Synthesised) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Words and options of every metric of every graph, without expressions."""
    for graph in graphs(deployment):
        for row in graph["metrics"]:
            *words, options = row if isinstance(row[-1], dict) else [*row, {}]
            if "expression" not in options:
                yield words, {"period": graph.get("period", 300)} | options


def searches(deployment: Synthesised) -> list[tuple[str, str, str, list[str]]]:
    """Namespace, dimension, metric and words of every search."""
    found = []
    for graph in graphs(deployment):
        for row in graph["metrics"]:
            if isinstance(row[-1], dict) and "expression" in row[-1]:
                parsed = SEARCH.fullmatch(row[-1]["expression"])
                assert parsed is not None, row
                words = [word.partition("=") for word in parsed[4].split()]
                assert {dimension for dimension, _, _ in words} == {parsed[2]}
                found.append((parsed[1], parsed[2], parsed[3], [word for _, _, word in words]))
    return found


def alarms_of(deployment: Synthesised) -> set[str]:
    """Physical names of all alarms."""
    return {
        one["AlarmName"]
        for template in deployment.stacks.values()
        for one in resources(template, "AWS::CloudWatch::Alarm").values()
    }


def queries(deployment: Synthesised) -> dict[str, tuple[str, dict[str, Any]]]:
    """Name of a saved query to its stack and its properties."""
    return {
        one["Name"]: (stack, one)
        for stack, template in deployment.stacks.items()
        for one in resources(template, QUERY).values()
    }


@pytest.mark.parametrize("changes", [{}, EVERYTHING], ids=["usual", "everything"])
def test_the_body_is_one_that_cloudwatch_takes(changes: Mapping[str, Any]) -> None:
    deployment = synthesise_once(**changes)
    name = only(deployment.template("dashboard"), DASHBOARD)["DashboardName"]
    text = json.dumps(body_of(deployment))
    assert list(list_problems(name, text)) == []
    assert len(text) < MOST_BYTES
    assert 10 <= len(body_of(deployment)["widgets"]) <= 20


def test_no_two_widgets_lie_over_each_other(deployment: Synthesised) -> None:
    cells = [
        (x, y)
        for one in body_of(deployment)["widgets"]
        for x in range(one["x"], one["x"] + one["width"])
        for y in range(one["y"], one["y"] + one["height"])
    ]
    assert len(cells) == len(set(cells))


def test_every_metric_of_ours_is_one_that_the_product_writes(everything: Synthesised) -> None:
    found = {tuple(words) for words, _ in rows(everything) if words[0] == names.METRICS}
    assert {words[1] for words in found} <= OURS
    assert {words[2:] for words in found} == {(metrics.DEPLOYMENT, "trainyard")}
    assert {words[1] for words in found} >= {
        metrics.RUNNING_USD,
        metrics.COST_SHARE,
        metrics.CHECKPOINT_AGE,
        metrics.PASSES,
        metrics.ENDED,
    }


def test_a_sum_of_dollars_is_that_of_one_minute(deployment: Synthesised) -> None:
    """Each pass writes its own value: the sum of five minutes would be five times as much."""
    ((_, options),) = [(words, options) for words, options in rows(deployment) if words[1] == metrics.RUNNING_USD]
    assert (options["stat"], options["period"]) == ("Sum", 60)


def test_a_figure_that_code_on_a_node_can_raise_is_shown_as_a_maximum(deployment: Synthesised) -> None:
    percent = {name for name, unit in metrics.UNITS.items() if unit == "Percent"}
    assert {options["stat"] for words, options in rows(deployment) if words[1] in percent} == {"Maximum"}


def test_every_other_metric_is_one_of_awss_own_about_what_is_deployed(everything: Synthesised) -> None:
    for words, options in rows(everything):
        if words[0] == names.METRICS:
            continue
        assert words[1] in AWS[words[0]], words
        assert options["stat"] == "Sum"
    machines = {words[3] for words, _ in rows(everything) if words[0] == "AWS/States"}
    assert machines == {
        f"arn:aws:states:{HOME}:111122223333:stateMachine:{machine('trainyard')}"
        for machine in (names.machine, names.grid_machine, names.search_machine)
    }


def test_searches_find_the_functions_and_the_queues_of_every_stack_at_home(everything: Synthesised) -> None:
    """CloudFormation calls a thing `<stack>-<logical id>-<characters>`; a search finds the words that a name is made of."""
    home = [stack for stack in everything.stacks if AWAY not in stack and "ap-south-1" not in stack]
    wanted = {
        "AWS/Lambda": {one for one in home if resources(everything.stacks[one], "AWS::Lambda::Function")},
        "AWS/SQS": {one for one in home if resources(everything.stacks[one], "AWS::SQS::Queue")},
    }
    found = searches(everything)
    for namespace, stacks in wanted.items():
        assert {words[0] for space, _, _, words in found if space == namespace} == stacks
    assert all(metric in AWS[namespace] for namespace, _, metric, _ in found)
    assert {tuple(words[1:]) for space, _, _, words in found if space == "AWS/SQS"} == {(LETTERS,)}


def test_every_queue_that_an_alarm_watches_is_called_letters(everything: Synthesised) -> None:
    watched = {
        dimension["Value"]["Fn::GetAtt"][0]
        for template in everything.stacks.values()
        for one in resources(template, "AWS::CloudWatch::Alarm").values()
        for dimension in one.get("Dimensions", ())
        if dimension["Name"] == "QueueName"
    }
    assert watched
    assert [name for name in watched if not re.match(rf"\w*{LETTERS}[0-9A-F]{{8}}$", name)] == []


@pytest.mark.parametrize("changes", [{}, {**EVERYTHING, "regions": THREE}], ids=["usual", "everything"])
def test_the_dashboard_shows_every_alarm_there_is(changes: Mapping[str, Any]) -> None:
    deployment = synthesise_once(**changes)
    (widget,) = (one for one in body_of(deployment)["widgets"] if one["type"] == "alarm")
    shown = widget["properties"]["alarms"]
    assert {arn.rpartition(":")[2] for arn in shown} == alarms_of(deployment)
    assert len(shown) == len(set(shown))
    assert {arn.split(":")[3] for arn in shown} == {HOME}


def test_every_graph_reads_the_region_of_the_functions() -> None:
    moved = synthesise_once(home_region=AWAY, regions=[{"region": AWAY, "cidr": "10.70.0.0/16"}])
    assert {graph["region"] for graph in graphs(moved)} == {AWAY}
    assert only(moved.template("dashboard"), DASHBOARD)["DashboardName"] == f"trainyard-dashboard-{AWAY}"


def test_the_first_widget_leads_to_everything_else(deployment: Synthesised) -> None:
    first = body_of(deployment)["widgets"][0]
    text, console = first["properties"]["markdown"], Console("aws", HOME)
    machine = f"arn:aws:states:{HOME}:111122223333:stateMachine:trainyard-train"
    for address in (console.machine(machine), console.queries, "$252Ftrainyard$252Ftrainyard$252Fnodes"):
        assert address in text
    assert "docs/runbook.md" in text
    runbook = "https://wiki.example.com/runbook"
    linked = body_of(synthesise_once(runbook_url=runbook))["widgets"][0]["properties"]["markdown"]
    assert f"[Runbook]({runbook})" in linked


def test_nothing_refers_to_another_stack_so_none_is_kept_from_changing(everything: Synthesised) -> None:
    text = everything.text("dashboard")
    assert "Fn::ImportValue" not in text
    others = {stack: template for stack, template in everything.stacks.items() if stack != "trainyard-dashboard"}
    without = synthesise_once(**EVERYTHING, regions=THREE, dashboard=False).stacks
    for stack, template in others.items():
        assert template.get("Outputs", {}).keys() == without[stack].get("Outputs", {}).keys()


def test_without_the_setting_there_is_neither_a_dashboard_nor_a_query() -> None:
    deployment = synthesise_once(dashboard=False)
    assert "trainyard-dashboard" not in deployment.stacks
    assert queries(deployment) == {}


# Saved queries


def test_queries_are_saved_for_what_the_runbook_asks(everything: Synthesised) -> None:
    assert queries(everything).keys() >= {
        "trainyard/which job is old, slow or near its cap",
        "trainyard/why was it refused: workflow",
        "trainyard/why was it refused: grid",
        "trainyard/why was it refused: search",
        "trainyard/last errors of workflow",
        "trainyard/last errors of reaper",
        "trainyard/last errors of campaigns",
        "trainyard/last errors of the nodes of JOB",
    }


def test_a_query_reads_logs_of_its_own_stack_or_those_of_nodes(everything: Synthesised) -> None:
    for name, (stack, one) in queries(everything).items():
        groups = one["LogGroupNames"]
        assert 1 <= len(groups) <= MOST_GROUPS, name
        if stack == "trainyard-dashboard":
            assert groups == [names.log_group("trainyard")]
            continue
        assert {group["Ref"] for group in groups} <= resources(everything.stacks[stack], "AWS::Logs::LogGroup").keys()


def test_the_question_for_old_jobs_reads_the_attendants_log(deployment: Synthesised) -> None:
    stack, one = queries(deployment)["trainyard/which job is old, slow or near its cap"]
    assert one["LogGroupNames"] == [
        {"Ref": logical_id(deployment.stacks[stack], "AWS::Logs::LogGroup", "AttendantLog")}
    ]


@pytest.mark.parametrize(
    ("text", "place"), [(OLD, "lambda/attendant"), (REFUSED, "lambda/admission"), (REFUSED, "lambda/planner")]
)
def test_a_query_asks_for_lines_and_fields_that_functions_write(text: str, place: str) -> None:
    sources = "".join(file.read_text() for file in sorted((ROOT / place).glob("*.py")))
    asked = re.findall(r'"([a-z ]+)"', text)
    assert asked
    assert [line for line in asked if f'"{line}"' not in sources] == []
    fields = text.partition("\n")[0].removeprefix("fields ").split(", ")
    of_powertools = {"@timestamp", "message", "service"}
    assert [field for field in fields if field not in of_powertools and f"{field}=" not in sources] == []


def test_every_query_is_within_the_limits_of_its_call(everything: Synthesised) -> None:
    shape = botocore.session.get_session().get_service_model("logs").operation_model("PutQueryDefinition").input_shape
    for name, (_, one) in queries(everything).items():
        assert limits.beyond(shape, {"name": name, "queryString": one["QueryString"]}) == ""
