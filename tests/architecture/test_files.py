"""Files that a person can take in: short, and with a first sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.sources import EVERYTHING, ROOT, name, python_files, source

LONGEST_FILE = 400
LONGEST_TEST = 600
"""Tests may be tables."""
LONGEST_FUNCTION = 80
ALL = python_files(*EVERYTHING)
SCRIPTED = ("image_builder", "node", "localaws", "tools/bake_image")
SCRIPTS = [file for place in SCRIPTED for file in sorted((ROOT / place).glob("*.sh"))]


def test_the_files_that_a_change_touches_are_there() -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("## What a change touches")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
    files = [file for row in rows for file in re.findall(r"`([^`]+)`", row)]
    assert len(files) >= 25
    assert [file for file in files if not any(ROOT.glob(file))] == []


def test_no_file_is_longer_than_a_person_reads() -> None:
    lengths = {name(file): len(file.read_text().splitlines()) for file in [*ALL, *SCRIPTS]}
    allowed = {
        file: LONGEST_TEST if file.startswith(("tests/", "localaws/tests/")) else LONGEST_FILE for file in lengths
    }
    assert {file: length for file, length in lengths.items() if length > allowed[file]} == {}


@pytest.mark.parametrize("file", ALL, ids=name)
def test_every_module_says_in_a_sentence_what_it_is(file: Path) -> None:
    documentation = source(file).docstrings[0]
    assert documentation, "no docstring"
    assert documentation.split("\n\n")[0].rstrip()[-1] in ".:", documentation


def test_no_function_of_the_product_is_longer_than_a_minute() -> None:
    long = {
        f"{name(file)}: {function}": length
        for file in python_files(
            "app.py", "contract", "grid_child", "lambda", "node", "stacks", "localaws", "rehearsal", "tools"
        )
        if not name(file).startswith("localaws/tests/")
        for function, length in source(file).functions
        if length > LONGEST_FUNCTION
    }
    assert long == {}


def test_nothing_is_left_to_do() -> None:
    marks = ("TO" + "DO", "FIX" + "ME", "X" * 3)
    left = [
        f"{name(file)}:{number}"
        for file in ALL
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        if any(mark in line for mark in marks)
    ]
    assert left == []
