"""Settings of the deployments that conftest.py synthesises, for tests to compare with."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from tests.builders import GRID_LIMITS
from tools.synthesis import ROOT

OPERATOR = "tests/stacks/files/operator.yaml"
"""Stands for the mpi-operator's release manifest."""
CLUSTER: dict[str, Any] = {
    "cluster": "new",
    "operator_manifest": OPERATOR,
    "operator_digest": hashlib.sha256((ROOT / OPERATOR).read_bytes()).hexdigest(),
}
"""A cluster of the deployment's own."""
EVERYTHING: dict[str, Any] = {
    "workbench": True,
    "catalogue": True,
    "kubernetes": {"cluster": "lab"},
    "campaigns": {
        "drive": {"prefix": "uploads/drive/", "suffix": "_READY", "input": {"manifest": "{data}/lines.jsonl"}}
    },
    "watch": {"digits": {"git": "https://github.com/owner/repository.git", "build": {"repository": "images"}}},
}
"""Every setting that brings a stack, a policy or a right."""
SPEED = 20.0
GIT_HOSTS = {"github.com": "github-token", "gitlab.com": "", "git.example.com": "github-token"}
MOST_GRID = replace(GRID_LIMITS, max_lines=100_000, max_concurrent=1, max_hours=672.0)
FAST_DISKS = {"volume_iops": 4_000, "volume_throughput": 1_000}
RESERVED = 5
"""Invocations at once."""
AGAIN_SOON: dict[str, Any] = {"terminate_again_s": 60}
HOME, AWAY, GRID = "eu-central-1", "us-east-1", "ap-south-1"
THREE: list[dict[str, str]] = [
    {"region": HOME, "cidr": "10.70.0.0/16"},
    {"region": AWAY, "cidr": "10.71.0.0/16"},
    {"region": GRID},
]
READER_ACCOUNT, READER_ORGANIZATION = "444455556666", "o-a1b2c3d4e5"
VPC = "vpc-0123456789abcdef0"
SUBNETS = {"eu-central-1a": "subnet-0123456789abcdef0", "eu-central-1b": "subnet-0123456789abcdef1"}
EXISTING: list[dict[str, object]] = [
    {"region": HOME, "vpc": VPC, "subnets": SUBNETS},
    {"region": AWAY, "cidr": "10.71.0.0/16"},
]
"""Home in a network that the account has already, and a region with one of its own."""
