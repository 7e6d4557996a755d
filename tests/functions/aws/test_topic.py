"""A message is sent whatever code of a job wrote into it: SNS takes it, and nobody's terminal obeys it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

import aws.topic
from aws.topic import MESSAGE_BYTES, SUBJECT, publish

LONGEST = 256 * 1024


def sent(subject: str = "a subject", message: str = "a text", **attributes: str) -> dict[str, Any]:
    """What SNS is given."""
    told = mock.Mock()
    with mock.patch.object(aws.topic, "client", return_value=SimpleNamespace(publish=told)):
        publish("arn:topic", subject, message, attributes=attributes)
    return dict(told.call_args.kwargs)


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\u4e2d", "\U0001f600"])
def test_a_long_text_is_cut_at_a_whole_letter(letter: str) -> None:
    text = sent(message="." + letter * 300_000)["Message"]
    assert MESSAGE_BYTES - 4 <= len(text.encode()) <= MESSAGE_BYTES < LONGEST
    assert set(text[1:]) == {letter}


@pytest.mark.parametrize("letter", ["\x00", "\x07", "\x1b", "\r", "\x9b", "\u202e", "\u2066", "\ud800"])
def test_what_a_terminal_obeys_or_nobody_can_send_is_a_question_mark(letter: str) -> None:
    given = sent(message=f"a{letter}b", owner=f"c{letter}d")
    assert given["Message"] == "a?b"
    assert given["MessageAttributes"]["owner"]["StringValue"] == "c?d"


def test_lines_tabs_and_every_language_stay() -> None:
    text = "a\n\tb \u05d0\u0431\u4e2d\U0001f469\u200d\U0001f680"
    assert sent(message=text)["Message"] == text


@pytest.mark.parametrize("letter", ["\n", "\t", "\u00e9", "\x7f"])
def test_a_subject_is_one_line_of_ascii(letter: str) -> None:
    assert sent(f"a{letter}b")["Subject"] == "a?b"
    assert len(sent("x" * 1000)["Subject"]) == SUBJECT


def test_an_attribute_without_a_value_is_left_out() -> None:
    """SNS rejects the whole message with it."""
    given = sent(event="done", owner="")["MessageAttributes"]
    assert given == {"event": {"DataType": "String", "StringValue": "done"}}
