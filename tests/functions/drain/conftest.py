"""A deployment that is to be destroyed, and CloudFormation, which asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.cloudformation import CloudFormation, listening
from tests.functions.drain.draining import Yard, draining


@pytest.fixture(scope="module")
def cloudformation() -> Iterator[CloudFormation]:
    with listening() as server:
        yield server


@pytest.fixture
def yard(cloudformation: CloudFormation) -> Iterator[Yard]:
    with draining(cloudformation) as made:
        yield made
