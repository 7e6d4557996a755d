"""A site, a fake S3 and a folder of checkpoints, for each test that wants one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.fakes import FakeS3, imds
from tests.node.folders import Rank
from tests.node.world import Site, metadata


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with imds(metadata()) as service:
        yield Site(tmp_path, service)


@pytest.fixture
def s3() -> FakeS3:
    return FakeS3()


@pytest.fixture
def folder(tmp_path: Path, s3: FakeS3) -> Rank:
    return Rank(tmp_path, s3)
