"""Nothing that is deployed has a byte of the command line, or of the libraries that print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stacks.parts.assembled import CONTRACT, LAMBDA, files
from stacks.parts.shipped import shipped
from tools.exports import EXPORTS

ROOT = Path(__file__).parents[2]
FUNCTIONS = sorted(path.parent.name for path in LAMBDA.glob("*/handler.py"))
OF_THE_COMMAND_LINE = {"trainyard", "typer", "rich", "shellingham"}
LAYERS = (
    "lambda/requirements.txt",
    "lambda/search-requirements.txt",
    "node/requirements.txt",
    "grid_child/requirements.txt",
)


@pytest.mark.parametrize("file", LAYERS)
def test_no_layer_has_a_library_of_it(file: str) -> None:
    assert file in EXPORTS
    packages = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / file).read_text(), re.MULTILINE))
    assert packages
    assert packages & OF_THE_COMMAND_LINE == set()


@pytest.mark.parametrize("layer", ["layer", "search-layer", "agent-libs"])
def test_no_layer_that_is_in_place_has_a_folder_of_it(layer: str) -> None:
    folder = ROOT / "build" / layer / "python"
    there = {path.name for path in folder.iterdir()} if folder.exists() else set[str]()
    assert there & OF_THE_COMMAND_LINE == set()


def test_no_archive_of_a_function_has_a_file_that_names_it() -> None:
    folders = {CONTRACT, *(LAMBDA / package for function in FUNCTIONS for package in shipped(function, LAMBDA))}
    named = re.compile(rb"^\s*(import|from) (trainyard|typer|rich|shellingham)\b", re.MULTILINE)
    assert [str(file) for folder in folders for file in files(folder) if named.search(file.read_bytes())] == []
    assert not any("trainyard" in shipped(function, LAMBDA) for function in FUNCTIONS)
