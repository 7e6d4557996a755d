"""A training that did not find a module is told what its machine has, and where the package belongs."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

import pytest

from agent.missing_modules import explain_in_image, explain_on_machine, find_missing

TAIL = [
    "Traceback (most recent call last):",
    "    import transformers",
    "ModuleNotFoundError: No module named 'transformers'",
]
SILENT = [
    [],
    ["exit"],
    ["ModuleNotFoundError"],
    ["ModuleNotFoundError: No module named 'a b'; echo"],
    ["ImportError: cannot import name 'x' from 'torch'"],
    [f"ModuleNotFoundError: No module named '{'x' * 200}'"],
    ["ModuleNotFoundError: No module named '\x1b[2J'"],
]


def version(name: str) -> str:
    """Of an image with PyTorch and numpy alone."""
    known = {"torch": "2.13.0", "numpy": "2.4.6"}
    if name not in known:
        raise PackageNotFoundError(name)
    return known[name]


def nothing(name: str) -> str:
    raise PackageNotFoundError(name)


@pytest.mark.parametrize("tail", SILENT)
def test_where_no_module_is_missing_nothing_is_explained(tail: list[str]) -> None:
    assert find_missing(tail) == ""
    assert explain_on_machine(tail, has_requirements=True, version=version) == ""
    assert explain_in_image(tail) == ""


def test_on_the_machine_s_own_python_the_image_s_frameworks_are_named() -> None:
    words = explain_on_machine(TAIL, has_requirements=False, version=version)
    assert words.startswith("; the machine image has torch 2.13.0, numpy 2.4.6 and no module transformers: ")
    assert "requirements.txt at the root of the code (the code has none)" in words
    assert "\n" not in words


def test_requirements_that_there_are_do_not_bring_it() -> None:
    assert "(it does not bring the module)" in explain_on_machine(TAIL, has_requirements=True, version=version)


def test_an_image_without_a_framework_is_called_so() -> None:
    assert "has no framework and no module transformers" in explain_on_machine(
        TAIL, has_requirements=True, version=nothing
    )


def test_beside_an_image_the_package_belongs_into_the_image() -> None:
    assert explain_in_image(TAIL).startswith("; the image has no module transformers: install it in its Dockerfile")


def test_of_several_the_last_one_is_named() -> None:
    assert find_missing([*TAIL, "during which", "ModuleNotFoundError: No module named 'mine.models'"]) == "mine.models"
