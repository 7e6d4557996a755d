"""The deployments that scanners look at, and the policies of the one that cdk.json describes."""

from __future__ import annotations

import os

os.environ.setdefault("CDK_VALIDATION", "false")  # as in tests/stacks/conftest.py

import pytest

from rehearsal.simulator import Policies
from tests.security.policies import of_roles
from tests.stacks.synth import Synthesised, synthesise

WIDE = {
    "network": {"nat_gateways": 3, "interface_endpoints": ["ecr.api", "ecr.dkr", "logs", "secretsmanager"]},
    "data_buckets": ["imagenet", "laion"],
    "images": {"arm64": "/lab/images/arm", "x86_64": "ami-0123456789abcdef0"},
    "keep_data": False,
}
"""Everything that the settings can add, rights to take everything away among it."""


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """The deployment that cdk.json describes."""
    return synthesise(tmp_path_factory.mktemp("default"))


@pytest.fixture(scope="session")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """The deployment with everything in it that the settings can add."""
    return synthesise(tmp_path_factory.mktemp("wide"), **WIDE)


@pytest.fixture(scope="session")
def policies(deployment: Synthesised) -> dict[str, Policies]:
    return of_roles(deployment)


@pytest.fixture(scope="session")
def wide_policies(wide: Synthesised) -> dict[str, Policies]:
    return of_roles(wide)
