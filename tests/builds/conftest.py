"""A fresh machine a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builds.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path)
    made.upload({"Dockerfile": "ARG BASE\nFROM ${BASE}\nCOPY . /opt/ml/code\n", "train.py": "print('hello')\n"})
    return made
