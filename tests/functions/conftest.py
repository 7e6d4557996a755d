"""CloudFormation, as the functions behind custom resources meet it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.cloudformation import CloudFormation, listening


@pytest.fixture
def cloudformation() -> Iterator[CloudFormation]:
    with listening() as server:
        yield server
