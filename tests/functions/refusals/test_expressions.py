"""Which expressions of metrics are refused, which misread printed numbers, and that judging one never takes long."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.metric_values import NUMBER, write_expression
from grid_plan.limits import MOST_EXPRESSION
from refusals.expressions import MAY_BE, PRINTED, find_fault, find_misreading

ROOT = Path(__file__).parents[3]
RIGHT = (
    write_expression("loss"), f"'loss': {NUMBER}", f"(?i)LOSS[ :=]*{NUMBER}", r"loss=(\S+)", r"loss=(.*)$", r"loss=(.*?);",
    r"loss=([^,]+),", r"^.*loss: (\S+).*$", r"\bloss=(?P<value>\S+)", r"loss=([-+0-9.e]+|nan|inf|-inf)(?=\s|$)",
    r"loss\s*[:=]\s*(\S+)%?",
    r"(?:loss|val)=(\S+)", r"loss=([+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|nan|-?inf)", r"(?x) loss = (\S+) # as printed",
    r"[^ =:_\-/x0](\S+)", "[\u4e00-\u4e8c](\\S+)", r"[\d\D](\S+)", r"(?s).(\S+)",
    r"(?:.*\|){4}\s*(\S+)", r"loss=(?=.*;)(\d+)", r"(?<=loss=)(\S+)", r"(?<=loss=)(\S+)(?=,)", r"loss=(?=\S)(\S+)",
    r"loss=(\S+)(?=,), acc", r"loss=(\S+)(?=.*acc)", r"loss=(?=(\S+);)", r"(?<!val_)loss=(\S+)(?![.])", r".*loss=.*?=(\S+).*",
    ".*,.*,.*loss=(\\S+)", r"(.*)\s(.*)\s.*", "(.*?)," * 5 + ".*",
)  # fmt: skip
"""Expressions that read every number, or that cannot be tried."""
MISREADING = {
    r"loss=([0-9.]+)": '"loss=7.1e-05" as 7.1 and "loss=1e-05" as 1, and finds no number in "loss=-0.25", "loss=nan", "loss=-inf"',
    r"loss=([0-9\.]+)": '"loss=7.1e-05" as 7.1',
    r"loss=(\d+\.\d+)": '"loss=7.1e-05" as 7.1',
    r"loss=(-?[0-9.]+)": '"loss=7.1e-05" as 7.1',
    r"loss=-?([0-9.e-]+)": '"loss=-0.25" as 0.25',
    r"'loss': ([0-9]+(.|e\-)[0-9]+),?": "\"'loss': 7.1e-05\" as 7.1",
    r"loss=(\d+)": '"loss=0.25" as 0',
    r"loss.*([0-9.]+)": '"loss0.25" as 5',
    r".*loss=.*?([0-9.]+)": '"loss=-0.25" as 0.25',
    r"loss=(-?\d+\.\d+(?:e-?\d+)?)": '"loss=1.5e+20" as 1.5',
    r"loss=([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)": 'no number in "loss=nan", "loss=inf", "loss=-inf"',
    r"loss=([-+0-9.eE]+|nan)": 'no number in "loss=inf", "loss=-inf"',
    r"loss=(.*?)": "finds no number in",
    r"loss=()": "finds no number in",
    r"(loss)=([0-9.]+)": "finds no number in",
    r"loss=([a-z]+)": 'no number in "loss=0.25"',
    r"loss=(\w+)": '"loss=0.25" as 0',
    r"loss: (\d{1,3}(,\d{3})*)": '"loss: 0.25" as 0',
    r"(?<=loss=)([0-9.]+)": '"loss=7.1e-05" as 7.1 and "loss=1e-05" as 1, and finds no number in "loss=-0.25"',
    r"(?<=loss)=([0-9.]+)": '"loss=7.1e-05" as 7.1',
    r"loss=(?<==)([0-9.]+)": '"loss=7.1e-05" as 7.1',
    r"(?:(?<=loss=))(?:([0-9.]+))": '"loss=7.1e-05" as 7.1',
    r"loss=([0-9.]+)(?=,)": 'finds no number in "loss=-0.25,", "loss=7.1e-05,", "loss=-inf,"',
    r"loss=([0-9.]+)(?=,), acc": 'finds no number in "loss=-0.25, acc"',
    r"loss=([0-9.]+)(?=\s)(?<!x)": 'finds no number in "loss=-0.25 "',
    r"loss=([0-9.]+)(?<=[0-9])": '"loss=7.1e-05" as 7.1',
}
"""Expression to what it is said to misread."""
NO_VALUE = {
    "loss=(": "is no regular expression: missing )",
    "loss=[": "is no regular expression: unterminated character set",
    "loss=)": "is no regular expression: unbalanced parenthesis",
    "*loss=(x)": "is no regular expression: nothing to repeat",
    r"(?<loss>\d+)": "is no regular expression: unknown extension",
    r"\p{Digit}=(x)": r"is no regular expression: bad escape \p",
    "(x){99999999999999999999}": "is no regular expression: the repetition number is too large",
    "loss=[0-9.]+": "has no group",
    "loss=(?:[0-9.]+)": "has no group",
    r"loss=\([0-9.]+\)": "has no group",
    "loss=[(]x[)]": "has no group",
    "(?=x)(?<!y)(?>z)": "has no group",
    "loss=\n(x)": "holds a line end",
    "loss=(x)\r": "holds a line end",
}
SLOW = (
    r"(\d+)+x", r"([0-9]+)*x", r"loss=(([0-9]+)+);", "((a*)*)*b", "(a|a)*b", r"(?:xx|x)+=(\S+)", r"([a-z]+ ?)+: (\S+)", r"(\s*\s*)*(x)",
    r"(.*)*(x)", r"(?:.*,)*x(\d)", r"(?:a?a?)+(b)", r"(?i)(A+)+b", r"(?:(?:x+)+y)?(z)", r"(?=(a+)+b)(c)", "(" * 90 + "a" + "*)" * 90,
)  # fmt: skip
"""Expressions with which an engine that goes back needs longer than anybody waits."""


@pytest.mark.parametrize("expression", RIGHT)
def test_an_expression_that_reads_every_number_is_taken_without_a_word(expression: str) -> None:
    assert (find_fault(expression), find_misreading(expression)) == ("", "")


@pytest.mark.parametrize("expression", MISREADING)
def test_an_expression_that_misreads_a_printed_number_is_said_with_the_line(expression: str) -> None:
    assert find_fault(expression) == ""
    said = find_misreading(expression)
    assert MISREADING[expression] in said
    assert said.endswith(f"after the words before the number, {NUMBER} reads all of them")


@pytest.mark.parametrize("expression", NO_VALUE)
def test_an_expression_that_gives_no_value_is_refused(expression: str) -> None:
    fault = find_fault(expression)
    assert NO_VALUE[expression] in fault
    assert fault.endswith(f"; allowed: {MAY_BE}")


@pytest.mark.parametrize("expression", SLOW)
def test_an_expression_that_would_stop_whoever_reads_the_log_is_refused(expression: str) -> None:
    assert "repeats a repeat" in find_fault(expression)


@pytest.mark.parametrize(
    ("expression", "letter"),
    [("(.*)," * 10 + "x", ","), (".*" * 60 + r"(\d)", " "), ("a?" * 100 + "a" * 100 + r"=(\S+)", "a")],
)
def test_an_expression_of_many_repeats_in_a_row_that_would_stop_whoever_reads_the_log_is_refused(
    expression: str, letter: str
) -> None:
    assert f"has too many repeats in a row, and needs hours for a line with 64 times '{letter}'" in find_fault(
        expression
    )


@pytest.mark.parametrize(
    "expression", ["(.*)," * 4 + "x", r"(?:\S+\s+){9}(\S+)", "(.*)," * 10 + ".*", r"\d?" * 99 + "()"]
)
def test_repeats_in_a_row_that_an_engine_is_soon_done_with_are_taken(expression: str) -> None:
    assert find_fault(expression) == ""


@pytest.mark.parametrize(
    "expression",
    [
        r"(\w+\s)*loss=(\S+)", r"(?:\d+,)*(\d+)", r"(?:\w+=\w+, )*loss=(\S+)", r"(?:[^|]*\|){8}(.*?)\|", r"(?:.*\|){6}(\S+)",
            r"(ab?c)+=(\d)", r"(?:a{2,3})+(b)", r"loss=(\d+(?:[.]\d+)*)", r".*epoch.*step.*loss: (.*?),.*", r"(?:){1000000}(\S+)",
        r"((a{1000}){1000}){1000}",
        "a?" * 100 + "a" * 100 + r"=(\S+)", r"(?:a|b|ab)*(?:ab){60}x([0-9]+)", ".*" * 60 + r"(\d)",
    ],
)  # fmt: skip
def test_an_expression_whose_repeats_are_apart_is_taken_and_judged_without_a_wait(expression: str) -> None:
    """A wait would be the test's end."""
    assert "repeats a repeat" not in find_fault(expression)
    find_misreading(expression)


def test_a_number_that_is_printed_is_one() -> None:
    assert [float(one) for one in PRINTED]
    assert {repr(float(one)) for one in PRINTED} >= {"7.1e-05", "-0.25", "1e-05", "nan", "inf", "-inf"}


@given(
    st.one_of(
        st.text(max_size=40),
        st.from_regex(r"\A[a-z(){}\[\]|*+?.\\^$0-9,:=<>!#-]{0,30}\Z"),
        st.sampled_from(RIGHT + SLOW),
    )
)
def test_whatever_stands_in_the_place_of_an_expression_is_judged_in_words(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fault = find_fault(text)
        assert fault == "" or fault.endswith(MAY_BE)
        if not fault:
            assert re.compile(text).groups
            assert "\n" not in find_misreading(text)


def list_documents() -> Iterator[tuple[str, str]]:
    """Every JSON document of the examples and of the guides, by its place."""
    for file in sorted((ROOT / "examples").rglob("*.json*")):
        texts = file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]
        yield from ((str(file), text) for text in texts)
    for file in [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]:
        yield from ((str(file), text) for text in re.findall(r"```json\n(.*?)```", file.read_text(), re.DOTALL))


def list_metrics(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (
            one
            for name, metrics in value.items()
            if name == "metrics"
            for one in metrics.values()
            if isinstance(one, str)
        )
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from list_metrics(one)


def test_every_expression_that_examples_and_guides_have_people_copy_reads_every_number() -> None:
    found = list[tuple[str, str]]()
    for place, text in list_documents():
        try:
            found += [(place, one) for one in list_metrics(json.loads(text))]
        except ValueError:
            continue  # a part of a document
    assert len(found) > 10
    assert f"\n{NUMBER}\n" in (ROOT / "docs" / "guides" / "grid.md").read_text()
    assert [(place, one) for place, one in found if NUMBER not in one or find_fault(one) or find_misreading(one)] == []


@pytest.mark.parametrize("part", ["(a*)", "[^x]", "(a|b)*", r"\d?", "(?:", "x{1,9}", "(?=a)", "(a*)*", "(|a)*"])
def test_the_longest_expression_is_judged_without_a_wait(part: str) -> None:
    expression = part * (MOST_EXPRESSION // len(part))
    assert find_fault(expression) or find_misreading(expression) is not None
