"""One deployment for all rehearsed jobs of a test run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal.conditions import Conditions
from rehearsal.yard import Yard


@pytest.fixture(scope="session")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """The product, deployed by the real CDK command line, under the conditions of `make rehearse`."""
    with Yard(tmp_path_factory.mktemp("yard") / "work", Conditions(speed=10.0)) as deployed:
        yield deployed


@pytest.fixture(scope="session")
def trainer(yard: Yard) -> str:
    """Address of the uploaded trainer without a framework."""
    return yard.upload(Path(__file__).with_name("trainer"), "trainer")
