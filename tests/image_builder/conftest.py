"""A fresh machine a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.image_builder.bench import Bench, fresh


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return fresh(tmp_path)
