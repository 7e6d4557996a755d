"""uv.lock, and the files that are made of it."""

from __future__ import annotations

import os
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
import tomllib

from tools.exports import EXPORTS, ROOT, UV, export, main

LOCK = (ROOT / "uv.lock").read_text()
OURS = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
"""The environment without a person's settings of uv: a mirror is not what the lock was made with."""


def pins(group: str) -> dict[str, str]:
    """Version by package of everything that a group installs."""
    return dict(re.findall(r"^([\w.-]+)(?:\[.*?\])?==([^ ;\\]+)", export(group), re.MULTILINE))


def test_the_lock_is_the_one_of_the_groups() -> None:
    done = subprocess.run([UV, "lock", "--check", "--offline"], cwd=ROOT, env=OURS, capture_output=True, text=True)
    assert done.returncode == 0, f"run `make lock`: {done.stderr}"


@pytest.mark.parametrize("file", EXPORTS)
def test_a_file_that_is_made_of_the_lock_is_what_its_command_writes(file: str) -> None:
    assert (ROOT / file).read_text() == export(EXPORTS[file]), "run `make lock`"


def test_the_lock_names_pypi_and_nobodys_mirror() -> None:
    assert set(re.findall(r"(?:url|registry) = \"(\w+://[^/\"]+)", LOCK)) == {
        "https://pypi.org",
        "https://files.pythonhosted.org",
    }


def test_the_lock_of_npm_names_no_registry() -> None:
    lock = (ROOT / "package-lock.json").read_text()
    assert '"integrity"' in lock
    assert '"resolved"' not in lock


def test_every_file_of_the_lock_has_its_hash() -> None:
    packages = tomllib.loads(LOCK)["package"]
    files = [file for one in packages for file in [*one.get("wheels", []), *filter(None, [one.get("sdist")])]]
    assert len(files) > 1000
    assert [file["url"] for file in files if not re.fullmatch(r"sha256:[0-9a-f]{64}", file["hash"])] == []


def test_what_the_three_parts_install_differs_in_extent_and_never_in_version() -> None:
    parts = [pins(group) for group in ("deploy", "rehearsal", "dev")]
    for smaller, larger in pairwise(parts):
        assert smaller.items() <= larger.items()
    assert not {"pytest", "moto", "boto3", "mypy", "pyrefly", "ruff", "hypothesis"} & parts[0].keys()
    assert not {"pytest", "mypy", "pyrefly", "ruff", "hypothesis", "cdk-nag"} & parts[1].keys()


def test_functions_nodes_the_grids_child_and_a_rehearsal_have_one_boto3() -> None:
    versions = [pins(group) for group in ("functions", "node", "grid-child", "rehearsal")]
    assert len({(one["boto3"], one["botocore"]) for one in versions}) == 1


def test_a_file_that_is_current_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "write_text", lambda path, *_, **__: pytest.fail(f"{path} was written"))
    main()
