"""Which commands the text of a shell runs for certain."""

from __future__ import annotations

import random

import pytest

from refusals.shell_commands import list_choices, list_commands

RUN: dict[str, list[str]] = {
    "a b": ["a b"],
    "  a\n\nb;c &d": ["a", "b", "c", "d"],
    "cd x && a || b && c; d": ["cd x", "a", "d"],
    "[ -e x ] && a && b; c": ["[ -e x ]", "c"],
    "test x && a\nb": ["test x", "b"],
    "a | tee log": ["a", "tee log"],
    "a >log 2>&1 b": ["a b"],
    "a &>log; b <in": ["a", "b"],
    "if a; then b; elif c; then d; else e; fi; f": ["a", "f"],
    "for x in 1 2; do a $x; done; b": ["a $x", "b"],
    "for x in $Y; do a; done; for x in *.py; do b; done; for x; do c; done; for x in; do d; done": [],
    "for x in 1 2; do a || continue; b; done; c": ["a", "c"],
    "for x in 1 2; do if a; then break; fi; b; done; c": ["a", "c"],
    "for x in 1\ndo\n[ -e x ] && a\nb\ndone": ["[ -e x ]", "b"],
    "[ -e x ] && for x in 1; do a; b; done": ["[ -e x ]"],
    "until a; do b; done; c": ["a", "c"],
    "while [ -e x ] && a; do b; done": ["[ -e x ]"],
    "if a; then for x in 1; do b; done; while c; do d; done; fi": ["a"],
    "while a; do while b; do c; done; done": ["a"],
    "while ! a; do sleep 1; done\nb": ["a", "b"],
    "case $X in a) b;; *) c;; esac; d": ["d"],
    "((X == 0)) && a\nb": ["b"],
    "{ a; }; (b); ! c": ["a", "b", "c"],
    "a; exit 1; b": ["a", "exit 1"],
    "a || exit 1; b": ["a", "b"],
    "exec a; b": ["exec a"],
    "# a\nb # c\nd#e": ["b", "d#e"],
    "a \\\n  b": ["a b"],
    "'a b' \"c\"d \\e": ["a b cd e"],
    'a "$B" ${C} $(d "e)") `f g`': ['a $B ${C} $(d "e)") `f g`'],
    "cat >x <<END\na\nEND\nb": ["cat", "b"],
    "cat <<-'E'; a\nb\n\tE\nc": ["cat", "a", "c"],
    "cat <<<x; a": ["cat", "a"],
    "diff <(a) b; c": ["diff <(a) b", "c"],
    "A=(b c); d": ["d"],
}
NOT_RUN = ("'a", '"a', "a $(b", "a `b", "a ${b", "f() { a; }; f", "function f { a; }; f", "alias a=b; a", "", "# a")


@pytest.mark.parametrize(("text", "commands"), RUN.items())
def test_a_command_that_runs_whatever_conditions_say_is_found(text: str, commands: list[str]) -> None:
    assert [" ".join(one.words) for one in list_commands(text)] == commands


@pytest.mark.parametrize(
    ("text", "choices"),
    {
        "if a; then b; else c; d; fi": [[["b"], ["c", "d"]]],
        "if a; then b; elif c; then d; else e; fi": [[["b"], ["d"], ["e"]]],
        "for x in 1; do if a; then b; else c; fi; done": [[["b"], ["c"]]],
        "if a; then [ -e x ] && b; else c; fi": [[["[ -e x ]"], ["c"]]],
        "if a; then b; fi; if a; then b; elif c; then d; fi": [],
        "if [ $RANK = 0 ]; then b; else c; fi": [],
        "if a; then b; elif [ $NODE_RANK = 1 ]; then c; else d; fi": [],
        "if a; then b; exit; else c; fi": [],
        "while a; do if b; then c; else d; fi; done": [],
        "x && test x && if b; then c; else d; fi": [],
        "if a; then b; else 'c": [],
    }.items(),
)
def test_an_if_of_which_one_branch_certainly_runs_is_a_choice(text: str, choices: list[list[list[str]]]) -> None:
    assert [[[" ".join(one.words) for one in each] for each in every] for every in list_choices(text)] == choices


@pytest.mark.parametrize("text", NOT_RUN)
def test_a_text_that_cannot_be_read_runs_nothing_for_certain(text: str) -> None:
    assert list_commands(text) == []


def test_a_command_has_the_variables_that_the_text_sets_before_it_and_what_ran() -> None:
    text = "A=1; export B='2 3' C\nif d; then export E=$F; fi\nG=4 h"
    *_, command = list_commands(text)
    assert command.words == ("h",)
    assert command.variables == {"A": "1", "B": "2 3", "E": "$F", "G": "4"}
    assert command.follows == ("d",)


def test_a_variable_for_one_command_is_not_set_for_the_next() -> None:
    first, second = list_commands("A=1 b; c")
    assert (first.variables, second.variables) == ({"A": "1"}, {})


LETTERS = [
    *"abAB=01 \t\n'\"`\\$(){}[]<>|&;#!*-",
    "if ",
    "then ",
    "fi;",
    "do ",
    "done;",
    "case ",
    "esac",
    "<<E",
    "\nE\n",
    "\0",
    "\ud800",
    "é",
]


def test_no_text_however_odd_raises_anything() -> None:
    chance = random.Random(54)
    for _ in range(3000):
        list_commands("".join(chance.choices(LETTERS, k=chance.randrange(40))))


@pytest.mark.parametrize("piece", ["$(", "(", "<<E\n", '"', "`", "\\", "a ", "${", "if ", "&&", "'\"$(("])
def test_a_text_of_a_hundred_kilobytes_is_read_once(piece: str) -> None:
    assert len(list_commands(piece * (100_000 // len(piece)))) <= 1
