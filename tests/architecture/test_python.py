"""Nothing needs a later Python than is promised: 3.11.0 everywhere, 3.10.0 where nodes and images run.

Of minor versions the type checker knows (`make types`); what came with a patch release only stands in Python's documentation.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import tomllib

from tests.architecture.checker import complaints
from tests.architecture.sources import EVERYTHING, ROOT, name, python_files

PATCHED = {
    # Names and keyword arguments to the releases that brought them into 3.10 and 3.11.
    "data_filter": "3.10.12, 3.11.4",
    "tar_filter": "3.10.12, 3.11.4",
    "fully_trusted_filter": "3.10.12, 3.11.4",
    "extraction_filter": "3.10.12, 3.11.4",
    "FilterError": "3.10.12, 3.11.4",
    "OutsideDestinationError": "3.10.12, 3.11.4",
    "LinkFallbackError": "3.11.13",
    "ALLOW_MISSING": "3.11.13",
    "set_int_max_str_digits": "3.10.7",
    "get_int_max_str_digits": "3.10.7",
    "SetReparseDeferralEnabled": "3.10.14, 3.11.9",
    "GetReparseDeferralEnabled": "3.10.14, 3.11.9",
    "verify_generated_headers": "3.10.15, 3.11.10",
}
ARGUMENTS = {
    ("extract", "filter"): "3.10.12, 3.11.4",
    ("extractall", "filter"): "3.10.12, 3.11.4",
    ("unpack_archive", "filter"): "3.10.12, 3.11.4",
    ("getaddresses", "strict"): "3.10.15, 3.11.10",
    ("parseaddr", "strict"): "3.10.15, 3.11.10",
}
SPELT = re.compile(rf"\b({'|'.join({*PATCHED, *(word for word, _ in ARGUMENTS)})})\b")
"""Found in each file that has one of them, and in a few more."""


def too_new(source: str) -> list[str]:
    """What of a file came with a patch release, as line and words. What is spelt like it and our own needs another name."""
    found: list[str] = []
    if not SPELT.search(source):  # most files, which need not be parsed then
        return found
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr=word) | ast.Name(id=word) if word in PATCHED:
                found.append(f"{node.lineno}: {word} ({PATCHED[word]})")
            case ast.ImportFrom(names=names):
                found += [f"{node.lineno}: {one.name} ({PATCHED[one.name]})" for one in names if one.name in PATCHED]
            case ast.Call(func=ast.Attribute(attr=word) | ast.Name(id=word), keywords=keywords):
                given = [(word, one.arg or "") for one in keywords]
                found += [
                    f"{node.lineno}: {word}({key}=) ({ARGUMENTS[word, key]})"
                    for word, key in given
                    if (word, key) in ARGUMENTS
                ]
    return found


def test_nothing_came_with_a_patch_release() -> None:
    everything = {name(file): too_new(file.read_text()) for file in python_files(*EVERYTHING)}
    assert {file: found for file, found in everything.items() if found} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import tarfile\ntarfile.open('x').extractall('y', filter='data')",
        "import tarfile\ntarfile.open('x').extract('y', filter='tar')",
        "from tarfile import data_filter",
        "import tarfile\ntarfile.TarFile.extraction_filter = None",
        "import shutil\nshutil.unpack_archive('x', 'y', filter='data')",
        "import sys\nsys.set_int_max_str_digits(0)",
        "import os\nos.path.realpath('x', strict=os.path.ALLOW_MISSING)",
    ],
)
def test_what_came_with_a_patch_release_is_found(source: str) -> None:
    assert too_new(source)


def test_the_checkers_look_for_what_the_project_promises() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["requires-python"] == ">=3.11"
    assert settings["tool"]["pyrefly"]["python-version"] == "3.11.0"
    assert settings["tool"]["ruff"]["target-version"] == "py310"
    assert "--python-version 3.10.0 $(OLDER)" in (ROOT / "Makefile").read_text()


NEWER_THAN_NODES = (
    "from enum import StrEnum\n",
    "from datetime import UTC\n",
    "import hashlib\nhashlib.file_digest\n",
)
"""Came with 3.11."""


def test_what_came_with_a_later_version_than_nodes_have_is_found(tmp_path: Path) -> None:
    """Of what came after 3.11 test_types.py has two."""
    for source, found in zip(
        NEWER_THAN_NODES, complaints(tmp_path, NEWER_THAN_NODES, "--python-version", "3.10.0"), strict=True
    ):
        assert [one for one in found if one.startswith("missing-")], source
