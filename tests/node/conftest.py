"""A site for each test that wants one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.fakes import imds
from tests.node.world import Site, metadata


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with imds(metadata()) as service:
        yield Site(tmp_path, service)
