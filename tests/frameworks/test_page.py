"""The page about frameworks shows what the tested scripts have, and the versions that are rehearsed."""

from __future__ import annotations

import re

import pytest
import tomllib

from contract.training import PROGRESS_FILE
from tests.frameworks.catalogue import FRAMEWORKS, ROOT, SCRIPTS, Framework

PAGE = (ROOT / "docs" / "guides" / "frameworks.md").read_text()
SNIPPET = re.compile(r"^From \[(\w+\.py)\]\(.*?\):\n\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
VERSION = re.compile(r"^\| (\w+)[^|]* \| ([\d.]+) \| `(\w+)` \|$", re.MULTILINE)
LEFT_OUT = "..."


def shown_lines() -> dict[str, list[str]]:
    """Lines of each script that the page shows, without what it leaves out."""
    return {name: [one for one in text.splitlines() if one != LEFT_OUT] for name, text in SNIPPET.findall(PAGE)}


def locked_versions() -> dict[str, str]:
    """Versions that `make rehearse-frameworks` installs, PyTorch's from the stand-in for the AMI."""
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    image = (ROOT / "localaws" / "machines" / "requirements-ami.in").read_text()
    (torch,) = re.findall(r"^torch==(.*)$", image, re.MULTILINE)
    return {one["name"]: one["version"] for one in packages if "version" in one} | {"torch": torch}


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=[one.name for one in FRAMEWORKS])
def test_every_line_that_the_page_shows_is_in_the_script_in_this_order(framework: Framework) -> None:
    script = (SCRIPTS / framework.script).read_text().splitlines()
    places = [script.index(line) for line in shown_lines()[framework.script]]
    assert places == sorted(places)
    assert places


def test_the_page_shows_no_script_that_is_not_rehearsed() -> None:
    assert shown_lines().keys() == {one.script for one in FRAMEWORKS}


def test_the_page_names_the_versions_and_layouts_that_are_rehearsed() -> None:
    table = {package: (version, layout) for package, version, layout in VERSION.findall(PAGE)}
    versions = locked_versions()
    assert {package: versions[package] for package in table} == {package: of[0] for package, of in table.items()}
    assert {of[1] for of in table.values()} == {one.layout for one in FRAMEWORKS}


def test_requirements_of_the_examples_are_those_that_are_rehearsed() -> None:
    lines = (SCRIPTS / "requirements.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    versions = locked_versions()
    assert pinned == {package: versions[package] for package in pinned}
    group = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["frameworks"]
    assert sorted(f"{package}=={version}" for package, version in pinned.items()) == sorted(group)


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=[one.name for one in FRAMEWORKS])
def test_no_script_knows_of_trainyard_but_by_the_folder_and_the_number_of_nodes(framework: Framework) -> None:
    script = (SCRIPTS / framework.script).read_text()
    assert PROGRESS_FILE not in script
    assert "trainyard" not in script.lower()
    assert set(re.findall(r'environ(?:\.get\(|\[)"(\w+)"', script)) <= {"CHECKPOINT_DIR", "NUM_NODES"}
