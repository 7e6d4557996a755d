"""Whatever is printed is harmless, whole, and on the right stream."""

from __future__ import annotations

import io
import json

import pytest

from trainyard.printer import Printer


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_nothing_of_a_table_is_cut_without_a_terminal() -> None:
    out = io.StringIO()
    Printer(as_json=False, out=out).table(["name", "reason"], [("a", "x" * 500), ("b", None)])
    assert out.getvalue().splitlines()[1].split() == ["a", "x" * 500]


def test_nothing_of_a_table_is_lost_at_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    Printer(as_json=False, out=out).table(["name", "reason"], [("name-of-a-job", "y" * 300)])
    assert out.getvalue().count("y") == 300
    assert max(map(len, out.getvalue().splitlines())) <= 80
    assert "\x1b" not in out.getvalue()


@pytest.mark.parametrize("evil", ["\x1b[2J", "\x1b]0;title\x07", "\u202e", "\u2066", "\x9b31m", "\r", "\x00", "[red]"])
def test_a_cell_and_a_line_steer_no_terminal(evil: str) -> None:
    out = Terminal()
    printer = Printer(as_json=False, out=out, err=out)
    printer.table(["name"], [(f"a{evil}b",)])
    printer.say(f"a{evil}b")
    printer.complain(f"a{evil}b")
    assert (evil == "[red]") == (evil in out.getvalue())


def test_json_is_ascii_on_stdout_and_messages_go_to_stderr() -> None:
    out, err = io.StringIO(), io.StringIO()
    printer = Printer(as_json=True, out=out, err=err)
    printer.say("hello")
    printer.table(["a"], [("b",)], "title")
    printer.document({"x": "\u202e\x1bü"})
    assert json.loads(out.getvalue()) == {"x": "\u202e\x1bü"}
    assert out.getvalue().isascii()
    assert err.getvalue() == "hello\n"


def test_numbers_that_json_has_not_are_null() -> None:
    out = io.StringIO()
    given = {"a": float("nan"), "b": [float("inf"), (1.5, -float("inf"))], 3: {"c": float("nan")}, "d": "NaN"}
    Printer(as_json=True, out=out).document(given)
    assert json.loads(out.getvalue(), parse_constant=pytest.fail) == {
        "a": None,
        "b": [None, [1.5, None]],
        "3": {"c": None},
        "d": "NaN",
    }


def test_documents_are_for_programs_alone() -> None:
    out = io.StringIO()
    Printer(as_json=False, out=out).document({"x": 1})
    assert out.getvalue() == ""


def test_half_of_a_surrogate_pair_ends_no_command() -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    Printer(as_json=False, out=out).say("a\ud800b")
    out.seek(0)
    assert out.read() == "a b\n"
