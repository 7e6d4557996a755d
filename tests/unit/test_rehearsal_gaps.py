"""The pure parts of the rehearsal's gaps: JSONata as Step Functions has it, and how often a schedule fires."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rehearsal.gaps.events import period_s
from rehearsal.gaps.jsonata import QueryFailed, evaluate

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
]


@pytest.mark.parametrize(("expression", "seconds"), PERIODS)
def test_a_schedule_fires_as_often_as_it_says(expression: str, seconds: float) -> None:
    assert period_s(expression) == seconds
