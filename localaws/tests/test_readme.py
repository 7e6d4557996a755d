"""The README's example runs from a clean folder, and its tables of faults and of gaps are the code's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import localaws
from localaws.__main__ import FURTHER
from localaws.faults import KEYS

FOLDER = Path(localaws.__path__[0])
README = (FOLDER / "README.md").read_text()


@pytest.mark.rehearsal
def test_the_example_prints_what_the_page_says(tmp_path: Path) -> None:
    example, printed = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL)[0]
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(FOLDER.parent)}
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == (printed, 0), done.stderr


def test_the_page_has_every_fault_with_its_keys_and_defaults() -> None:
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \|[^|]*\|(.*)\|$", README, re.MULTILINE))
    listed = {name: dict(re.findall(r"`(\w+)=([^`]*)`", keys)) for name, keys in rows.items()}
    assert listed == KEYS


def test_the_page_names_every_further_gap() -> None:
    assert [gap for gap in FURTHER if f"`{gap}`" not in README] == []
