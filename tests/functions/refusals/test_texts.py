"""A text that UTF-8 or a process cannot hold is refused where it stands, however deep, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from refusals.texts import NUL, find_half, validate
from refusals.wording import lines

ALLOWED = {"name": "a name", "any": "anything", "count": "a whole number"}
HALF = "is not valid Unicode (it holds half of a surrogate pair)"


class Input(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = ""
    other: dict[str, Any] = Field(default={}, alias="any")
    count: int = 0


def said(given: object) -> list[str]:
    found, errors = validate(Input, given)
    assert (found is None) is bool(errors)
    return lines(errors, ALLOWED)


@pytest.mark.parametrize("text", ["", "a", "\U0001f600", "\x1b\n\u2028\u202e", "\ud7ff\ue000\uffff", "a" * 100_000])
def test_any_other_text_passes_as_a_value_and_as_a_name(text: str) -> None:
    assert said({"name": text, "any": {text: [text, {text: text}]}}) == []


@pytest.mark.parametrize(("text", "why"), [("\ud800", HALF), ("a\udfffb", HALF), ("a\0", NUL), ("\0\ud800", HALF)])
def test_a_text_is_refused_by_the_place_where_it_stands(text: str, why: str) -> None:
    (value,) = said({"any": {"a": [1, {"b": text}]}})
    (name,) = said({"any": {"a": [{text: 1}]}})
    assert value.startswith("any.a.1.b: ")
    assert name.startswith("any.a.0.")
    assert all(why in one and one.isprintable() and "; allowed: " in one for one in (value, name))


def test_the_name_of_no_field_is_refused_as_such_unless_no_document_can_hold_it() -> None:
    (nul,), (half,) = said({"a\0": 1}), said({"a\ud800": 1})
    assert nul.startswith("a\\u0000: there is no such field")
    assert half.startswith('request: "a\\ud800" is not valid Unicode')


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (
            {"count": "\ud800"},
            'count: "\\ud800" is not a whole number (numbers have no quotes); allowed: a whole number',
        ),
        ({"any": "\0"}, 'any: "\\u0000" is not an object; allowed: anything'),
        ({"nme": "\0"}, "nme: there is no such field (did you mean name?); allowed: name, any, count"),
    ],
)
def test_a_field_that_is_wrong_already_is_refused_once(given: Any, line: str) -> None:
    assert said(given) == [line]


def test_every_such_text_has_a_line() -> None:
    assert [one.partition(":")[0] for one in said({"name": "\0", "any": {"a": "\0", "b": ["\0", "\0"]}})] == [
        "name",
        "any.a",
        "any.b.0",
        "any.b.1",
    ]


def test_an_input_may_be_nested_deeper_than_python_calls() -> None:
    deep: Any = "\0"
    for _ in range(5_000):
        deep = [deep]
    assert find_half({"any": deep}) is None
    (line,) = said({"any": {"a": deep}})
    assert line.startswith("any.a.0.0")


@pytest.mark.parametrize("given", ["x", ["\0"], 3, None])
def test_what_is_no_object_is_refused_as_such(given: object) -> None:
    assert validate(Input, given)[0] is None
