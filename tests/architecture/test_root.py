"""The root of the repository, which a newcomer reads first."""

from __future__ import annotations

import subprocess

from tests.architecture.sources import ROOT

MOST_FILES = 14


def test_the_root_has_few_files() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = [file for file in tracked.splitlines() if "/" not in file]
    assert len(files) <= MOST_FILES, f"move one to the folder that it serves: {files}"
