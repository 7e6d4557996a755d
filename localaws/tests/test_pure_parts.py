"""The pure parts of the rehearsal's gaps: JSONata as Step Functions has it, schedules, alarms, policies of resources."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from moto.stepfunctions.parser.asl.parse.asl_parser import ASLParserException

from localaws.services import metric_math
from localaws.services.cloudformation_stacks import last_first
from localaws.services.events import period_s
from localaws.services.jsonata import QueryFailed, evaluate
from localaws.services.permits import lets
from localaws.services.stepfunctions import parse

VALUES: list[tuple[str, dict[str, Any], Any]] = [
    ("$x", {"x": "\"a\" 'b'\n{% $y %} \\"}, "\"a\" 'b'\n{% $y %} \\"),
    ("$x", {"x": None}, None),
    ("$x.y", {"x": {"y": None}}, None),
    ("$x = null", {"x": None}, True),
    ("$exists($x.error)", {"x": None}, False),
    ("$append($x, [{'a': null}])", {"x": []}, [{"a": None}]),
    ("$parse($x).errorMessage", {"x": '{"errorMessage": "no \\"x\\""}'}, 'no "x"'),
    ("$partition([1, 2, 3, 4, 5], 2)", {}, [[1, 2], [3, 4], [5]]),
    ("$range(0, 10, 3)", {}, [0, 3, 6, 9]),
    ("$range(5, 1, -2)", {}, [5, 3, 1]),
    ("$hash('abc', 'SHA-256')", {}, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ("$length($uuid())", {}, 36),
    ("$random(7) = $random(7)", {}, True),
    ("$random() < 1", {}, True),
    ("4 / 2", {}, 2),
    ("{'kept': $x, 'gone': $y}", {"x": [1]}, {"kept": [1]}),
]


@pytest.mark.parametrize(("expression", "variables", "value"), VALUES, ids=lambda value: str(value)[:40])
def test_an_expression_has_the_value_that_step_functions_gives(
    expression: str, variables: dict[str, Any], value: Any
) -> None:
    assert evaluate(expression, variables) == value


@pytest.mark.parametrize(
    "expression", ["$absent", "$x.absent", "1 +", "function($v){ $v }", "$parse('{')", "$", "$range(1, 2, 0)"]
)
def test_an_expression_without_a_json_value_fails(expression: str) -> None:
    with pytest.raises(QueryFailed):
        evaluate(expression, {"x": {}})


def test_an_expression_cannot_change_a_variable_of_the_machine() -> None:
    given = {"x": {"a": [1]}}
    assert evaluate("$x ~> |$|{'a': 2}|", given) == {"a": 2}
    assert given == {"x": {"a": [1]}}


def test_the_time_of_an_expression_is_now_however_often_it_is_evaluated() -> None:
    first = evaluate("$millis()", {})
    time.sleep(0.02)
    assert evaluate("$millis()", {}) > first


PERIODS = [
    ("rate(1 minute)", 60),
    ("rate(5 minutes)", 300),
    ("rate(2 hours)", 7200),
    ("cron(0/5 * * * ? *)", 300),
    ("cron(* * * * ? *)", 60),
    ("cron(0,30 * * * ? *)", 1800),
    ("cron(15 * * * ? *)", 3600),
    ("cron(0 6 * * ? *)", 86400),
    ("cron(0 8 ? * MON *)", 604800),
    ("cron(0 8 ? * MON,THU *)", 302400),
]


@pytest.mark.parametrize(("expression", "seconds"), PERIODS)
def test_a_schedule_fires_as_often_as_it_says(expression: str, seconds: float) -> None:
    assert period_s(expression) == seconds


MATH: list[tuple[str, list[float | None]]] = [
    ("FILL(m, 0)", [1, 0, 3]),
    ("m + n", [2, None, 3]),
    ("SUM([m, n])", [2, 5, 3]),
    ("MAX([FILL(m, 9), n])", [1, 9, 3]),
    ("m * n - n", [0, None, 0]),
    ("FILL(never, 0)", [None, None, None]),
]


@pytest.mark.parametrize(("expression", "values"), MATH)
def test_metric_math_keeps_what_is_missing_apart_from_zero(expression: str, values: list[float | None]) -> None:
    known: dict[str, metric_math.Values] = {"m": [1, None, 3], "n": [1, 5, 0], "never": [None, None, None]}
    assert metric_math.evaluate(expression, known) == values


def test_metric_math_that_nobody_taught_it_is_no_silent_zero() -> None:
    with pytest.raises(NotImplementedError, match="ANOMALY"):
        metric_math.evaluate("ANOMALY_DETECTION_BAND(m)", {"m": [1]})


NONE: list[float | None] = [None] * 5
VERDICTS: list[tuple[list[float | None], str, str]] = [
    ([0, 0, 1, 1, 1], "missing", "ALARM"),
    ([1, 1, 1, 1, 0], "missing", "OK"),
    ([1, 1, 1, None, None], "notBreaching", "ALARM"),  # older data stands in for missing data
    ([0, 0, 0, None, None], "breaching", "OK"),
    ([None, None, 1, None, None], "breaching", "ALARM"),
    ([None, None, 1, None, None], "notBreaching", "OK"),
    ([None, None, 1, None, None], "ignore", "before"),
    (NONE, "missing", "INSUFFICIENT_DATA"),
    (NONE, "breaching", "ALARM"),
    (NONE, "notBreaching", "OK"),
    (NONE, "ignore", "before"),
]


@pytest.mark.parametrize(("values", "missing", "state"), VERDICTS)
def test_an_alarm_of_three_periods_judges_as_cloudwatch_does(
    values: list[float | None], missing: str, state: str
) -> None:
    found = metric_math.verdict(
        values, periods=3, to_alarm=3, breaches=lambda value: value > 0, missing=missing, state="before"
    )
    assert found == state


def statement(effect: str, principal: object, action: object) -> dict[str, object]:
    return {"Statement": [{"Effect": effect, "Principal": principal, "Action": action, "Resource": "*"}]}


EVENTS = "events.amazonaws.com"
PERMITS: list[tuple[object, bool]] = [
    (statement("Allow", {"Service": EVENTS}, "sqs:SendMessage"), True),
    (statement("Allow", {"Service": [EVENTS, "sns.amazonaws.com"]}, ["SQS:*"]), True),
    (statement("Allow", {"AWS": "*"}, "sqs:SendMessage"), True),
    (statement("Allow", "*", "sqs:SendMessage"), True),
    (statement("Deny", {"Service": EVENTS}, "sqs:SendMessage"), False),
    (statement("Allow", {"Service": "sns.amazonaws.com"}, "sqs:SendMessage"), False),
    (statement("Allow", {"AWS": "arn:aws:iam::123456789012:root"}, "sqs:SendMessage"), False),
    (statement("Allow", {"Service": EVENTS}, "sqs:ReceiveMessage"), False),
    (None, False),
]


@pytest.mark.parametrize(("policy", "open_"), PERMITS)
def test_a_service_reaches_what_lets_it(policy: Any, open_: bool) -> None:
    assert lets(policy, EVENTS, "sqs:SendMessage") is open_


RESOURCES: dict[str, Any] = {
    "Bucket": {"Type": "B"},
    "Key": {"Type": "K"},
    "Role": {"Type": "R", "Properties": {"Of": {"Fn::Sub": "arn:${AWS::Partition}:${Bucket}/${Key.Arn}"}}},
    "Function": {"Type": "F", "DependsOn": "Role", "Properties": {"Name": {"Fn::Join": ["", [{"Ref": "Bucket"}]]}}},
    "Drain": {"Type": "Custom::D", "DependsOn": ["Role"], "Properties": {"T": {"Fn::GetAtt": ["Function", "Arn"]}}},
    "Alone": {"Type": "A", "Properties": {"Ref": {"Ref": "AWS::Region"}}},
}


def test_what_names_another_resource_is_deleted_before_it() -> None:
    order = list(last_first({"Resources": RESOURCES}))
    assert sorted(order) == sorted(RESOURCES)
    users = [("Drain", "Function"), ("Drain", "Role"), ("Function", "Role"), ("Role", "Bucket"), ("Role", "Key")]
    assert [pair for pair in users if order.index(pair[0]) > order.index(pair[1])] == []


# definitions of state machines

WAITS = {
    "StartAt": "Rest",
    "States": {"Rest": {"Type": "Wait", "Seconds": 1, "Next": "End"}, "End": {"Type": "Succeed"}},
}


def test_executions_that_start_at_once_share_the_tree_of_their_definition_and_nothing_that_they_evaluate() -> None:
    definition = json.dumps(WAITS)
    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(parse, [definition] * 64))
    programs = [program for program, _ in found]
    assert len({id(program) for program in programs}) == len({id(program.states.states) for program in programs}) == 64
    assert {tuple(program.states.states) for program in programs} == {("Rest", "End")}
    assert parse(definition)[1] is parse(definition)[1]


def test_a_definition_that_is_wrong_is_refused_each_time_and_a_changed_one_is_another() -> None:
    for _ in range(2):
        with pytest.raises(ASLParserException):
            parse('{"StartAt": ')
    changed = json.dumps({**WAITS, "StartAt": "End"})
    assert parse(json.dumps(WAITS))[0].start_at.start_at_name == "Rest"
    assert parse(changed)[0].start_at.start_at_name == "End"
