"""An account with the table of state, and the state as functions see it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from aws.state import State
from tests.fakes.aws import Aws
from tests.fakes.functions import Functions
from tests.fakes.state import TABLE
from tests.fakes.yard import deployed


@pytest.fixture
def fake() -> Iterator[Aws]:
    made = deployed()
    with Functions(made).installed():
        yield made


@pytest.fixture
def state(fake: Aws) -> State:  # noqa: ARG001
    return State(TABLE)
