"""The deployments that scanners look at, and the policies of the one that cdk.json describes."""

from __future__ import annotations

from typing import Any

import pytest

from localaws.iam.simulator import Policies
from tests.security.policies import of_roles
from tests.stacks.variations import CLUSTER, EXISTING
from tools.synthesis import Synthesised, synthesise

WIDE = {
    "network": {"nat_gateways": 3, "interface_endpoints": ["ecr.api", "ecr.dkr", "logs", "secretsmanager"]},
    "data_buckets": ["imagenet", "laion"],
    "job_roles": {"corpus": "arn:aws:iam::444455556666:role/corpus"},
    "images": {"arm64": "/lab/images/arm", "x86_64": "ami-0123456789abcdef0"},
    "keep_data": False,
    "workbench": True,
    "catalogue": True,
    "kubernetes": CLUSTER,
    "regions": [
        {"region": "eu-central-1", "cidr": "10.70.0.0/16"},
        {"region": "us-east-1", "cidr": "10.71.0.0/16"},
        {"region": "ap-south-1"},
    ],
    "repositories": ["images", "grid-child"],
    "image_readers": {"accounts": ["444455556666"], "organizations": ["o-a1b2c3d4e5"]},
    "copy_accounts": ["777788889999"],
    "grid": {"spot_children": True},
}
"""Everything that the settings can add, rights to take everything away among it."""
ZONED: dict[str, Any] = {"regions": EXISTING, "tags": {"CostCenter": "4711"}, "compliance": True}


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
