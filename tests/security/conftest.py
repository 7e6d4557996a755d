"""The deployments that scanners look at, and the policies of the one that cdk.json describes."""

from __future__ import annotations

import pytest

from localaws.iam.simulator import Policies
from tests.security.policies import of_roles
from tools.configurations import WIDE, ZONED
from tools.synthesis import Synthesised, synthesise


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """The deployment that cdk.json describes."""
    return synthesise(tmp_path_factory.mktemp("default"))


@pytest.fixture(scope="session")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """The deployment with everything in it that the settings can add."""
    return synthesise(tmp_path_factory.mktemp("wide"), **WIDE)


@pytest.fixture(scope="session")
def complying(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """The deployment that cdk.json describes, with customer keys, flow logs and access logs."""
    return synthesise(tmp_path_factory.mktemp("complying"), compliance=True)


@pytest.fixture(scope="session")
def zoned(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """A deployment in a landing zone: a network that the account has, tags of its own, and customer keys."""
    return synthesise(tmp_path_factory.mktemp("zoned"), **ZONED)


@pytest.fixture(scope="session")
def policies(deployment: Synthesised) -> dict[str, Policies]:
    return of_roles(deployment)


@pytest.fixture(scope="session")
def wide_policies(wide: Synthesised) -> dict[str, Policies]:
    return of_roles(wide)


@pytest.fixture(scope="session")
def zoned_policies(zoned: Synthesised) -> dict[str, Policies]:
    return of_roles(zoned)
