"""A name says what it is or does: a function is a verb and its object, and a word has one meaning in the whole tree."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import name, named_files, python_files

READ = named_files()
VAGUE = frozenset({"asked", "brought", "care", "empties", "look", "made", "told", "wish"})
"""Words that named texts, lists, dicts, bytes, verdicts and rounds alike; none names a function, class, module, parameter or field."""
PARTICIPLES = frozenset({"asked", "brought", "made", "told"})
"""Words that are no part of a function's name either: it is named by a verb."""
DOCUMENTS = ("contract/grid.py", "contract/intents.py")
"""Stored documents with a field `request`, the arguments of CreateTrainingJob or RunInstances: its name is a key of the document."""
IMPOSED = ("lambda/git_code/fetch_child.py",)
"""Files with a method `request` that a library calls so (urllib3)."""
ROOMS = frozenset({"__init__", "check", "facts", "judging", "kernel", "options"})
"""Modules that several folders of the agent have, each for its own part."""


def names(source: str) -> Iterator[tuple[int, str, str, str]]:
    """(line, kind, name, annotation) of every function, class, parameter and field."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            yield node.lineno, "function", node.name, ""
            arguments = node.args
            for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                yield node.lineno, "parameter", one.arg, ast.unparse(one.annotation) if one.annotation else ""
        elif isinstance(node, ast.ClassDef):
            yield node.lineno, "class", node.name, ""
            for one in node.body:
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                    yield one.lineno, "field", one.target.id, ast.unparse(one.annotation)


def vague(source: str) -> list[str]:
    """Names of a file that are a vague word, and functions that have a participle in their name."""
    return [
        f"{line}: {kind} {word}"
        for line, kind, word, _ in names(source)
        if word.strip("_").lower() in VAGUE or (kind == "function" and PARTICIPLES & set(word.split("_")))
    ]


def credentials_called_keys(source: str) -> list[str]:
    """Credentials that are called keys: those are keys of S3, DynamoDB or KMS."""
    return [
        f"{line}: {kind} {word}"
        for line, kind, word, annotation in names(source)
        if ("Credentials" in annotation and re.search(r"(^|_)keys($|_)", word)) or (kind == "class" and "Keys" in word)
    ]


def calls_of_aws_called_request(source: str) -> list[str]:
    """Arguments of a call to AWS that are called a request, which is what a person asks for."""
    return [
        f"{line}: {kind} {word}"
        for line, kind, word, annotation in names(source)
        if word.strip("_") in {"request", "requests"} and not annotation.endswith("Request")
    ]


def found(check: str, files: list[Path]) -> dict[str, list[str]]:
    every = {name(file): globals()[check](file.read_text()) for file in files}
    return {file: lines for file, lines in every.items() if lines}


def test_no_name_is_a_word_of_many_meanings() -> None:
    assert found("vague", READ) == {}


def test_no_function_of_the_local_aws_tests_and_benchmarks_is_one_either() -> None:
    """The name of a test is a sentence, in which these words have their plain meaning."""
    every = found("vague", python_files("tests", "localaws", "benchmarks", "examples"))
    functions = [f"{file}:{line}" for file, lines in every.items() for line in lines if ": function " in line]
    assert [line for line in functions if ": function test_" not in line] == []


def test_no_module_is_called_by_such_a_word() -> None:
    assert [name(file) for file in READ if file.stem in VAGUE] == []


def test_keys_are_no_credentials() -> None:
    assert found("credentials_called_keys", READ) == {}


def test_a_request_is_a_persons() -> None:
    files = [file for file in READ if name(file) not in DOCUMENTS + IMPOSED and not name(file).startswith("rehearsal/")]
    assert found("calls_of_aws_called_request", files) == {}


def test_no_two_modules_of_the_agent_have_one_name() -> None:
    count = Counter(file.stem for file in python_files("node/agent"))
    assert {one for one, times in count.items() if times > 1} <= ROOMS


@pytest.mark.parametrize(
    ("check", "source"),
    [
        ("vague", "def told() -> str: ..."),
        ("vague", "def _told() -> str: ..."),
        ("vague", "def regions_asked() -> str: ..."),
        ("vague", "def f(made: int) -> str: ..."),
        ("vague", "class Wish: ..."),
        ("vague", "class A:\n    brought: int = 0"),
        ("vague", "class A:\n    def look(self) -> None: ..."),
        ("credentials_called_keys", "def f(keys: SessionCredentials) -> None: ..."),
        ("credentials_called_keys", "class SessionKeys: ..."),
        ("calls_of_aws_called_request", "def run(request: Mapping[str, Any]) -> None: ..."),
        ("calls_of_aws_called_request", "def request() -> dict[str, Any]: ..."),
    ],
)
def test_a_bad_name_would_be_seen(check: str, source: str) -> None:
    assert globals()[check](source)


@pytest.mark.parametrize(
    ("check", "source"),
    [
        ("vague", "def look_at(place: str) -> str: ..."),
        ("vague", "def f() -> str:\n    told = 1\n    return str(told)"),
        ("credentials_called_keys", "def f(keys: Sequence[ItemKey]) -> None: ..."),
        ("calls_of_aws_called_request", "def admit(request: JobRequest) -> None: ..."),
    ],
)
def test_a_good_name_passes(check: str, source: str) -> None:
    assert globals()[check](source) == []
