"""Synthesises once for all tests of this folder."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stacks.synth import Synthesised, synthesise


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """The deployment that cdk.json describes."""
    return synthesise(tmp_path_factory.mktemp("default"))


@pytest.fixture(scope="session")
def machine(deployment: Synthesised) -> dict[str, Any]:
    return deployment.machine
