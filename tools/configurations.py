"""Settings of the deployments that tests, scanners and `make synth-diff` synthesise, each in place of those of cdk.json."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from tools.file_systems import EVERY

HOME, AWAY, GRID = "eu-central-1", "us-east-1", "ap-south-1"
THREE: list[dict[str, str]] = [
    {"region": HOME, "cidr": "10.70.0.0/16"},
    {"region": AWAY, "cidr": "10.71.0.0/16"},
    {"region": GRID},
]
"""Home, a region where nodes run, and one for the grid alone."""
READER_ACCOUNT, READER_ORGANIZATION = "444455556666", "o-a1b2c3d4e5"
VPC = "vpc-0123456789abcdef0"
SUBNETS = {"eu-central-1a": "subnet-0123456789abcdef0", "eu-central-1b": "subnet-0123456789abcdef1"}
EXISTING: list[dict[str, object]] = [
    {"region": HOME, "vpc": VPC, "subnets": SUBNETS},
    {"region": AWAY, "cidr": "10.71.0.0/16"},
]
"""Home in a network that the account has already, and a region with one of its own."""
GIT_HOSTS = {"github.com": "github-token", "gitlab.com": "", "git.example.com": "github-token"}
OPERATOR = "tests/stacks/files/operator.yaml"
"""Stands for the mpi-operator's release manifest."""
CLUSTER: dict[str, Any] = {
    "cluster": "new",
    "operator_manifest": OPERATOR,
    "operator_digest": hashlib.sha256((Path(__file__).parents[1] / OPERATOR).read_bytes()).hexdigest(),
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
WIDE: dict[str, Any] = {
    "network": {"nat_gateways": 3, "interface_endpoints": ["ecr.api", "ecr.dkr", "logs", "secretsmanager"]},
    "data_buckets": ["imagenet", "laion"],
    "job_roles": {"corpus": "arn:aws:iam::444455556666:role/corpus"},
    "images": {"arm64": "/lab/images/arm", "x86_64": "ami-0123456789abcdef0"},
    "keep_data": False,
    "workbench": True,
    "catalogue": True,
    "kubernetes": CLUSTER,
    "regions": THREE,
    "repositories": ["images", "grid-child"],
    "image_readers": {"accounts": [READER_ACCOUNT], "organizations": [READER_ORGANIZATION]},
    "copy_accounts": ["777788889999"],
    "grid": {"spot_children": True},
}
"""Everything that the settings can add, rights to take everything away among it."""
ZONED: dict[str, Any] = {"regions": EXISTING, "tags": {"CostCenter": "4711"}, "compliance": True}
"""A deployment in a landing zone: a network that the account has, tags of its own, and customer keys."""
VARIED: dict[str, Any] = {
    "git_hosts": GIT_HOSTS,
    "grid": {"limits": {"max_lines": 100_000, "max_concurrent": 1, "max_hours": 672.0}},
    "limits": {"volume_iops": 4_000, "volume_throughput": 1_000},
    "reserved_concurrency": 5,
    "timing": {"terminate_again_s": 60},
}
"""Settings that have nothing to do with each other."""
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "everything": EVERYTHING,
    "wide": WIDE,
    "complying": {"compliance": True},
    "zoned": ZONED,
    "file-systems": {"file_systems": EVERY},
    "passing": {"keep_data": False},
    "varied": VARIED,
}
"""What `make synth-diff` synthesises, by name."""
