"""What campaigns and watches the tests of stacks set."""

from __future__ import annotations

from typing import Any

HOME, AWAY, THIRD = "eu-central-1", "us-east-1", "ap-south-1"
HOME_BUCKET = "trainyard-home-111122223333-eu-central-1"
A_DAY_S = 86_400
GRID: dict[str, Any] = {"manifest": "{data}/lines.jsonl"}
JOB: dict[str, Any] = {"code": "{data}/code.tar.gz", "command": ["train.py"], "instance_types": ["g5.xlarge"]}
SEARCH: dict[str, Any] = {
    "template": {"data": "{data}/train/", "max_hours": 1},
    "search": {"depth": {"int": [2, 8]}},
    "objective": {"metric": "accuracy", "direction": "maximize"},
    "trials": 8,
}
CAMPAIGNS: dict[str, Any] = {
    "drive-eu": {"prefix": "uploads/drive-eu/", "suffix": "_READY", "input": GRID},
    "near": {"bucket": "imagenet", "prefix": "near/", "suffix": ".done", "input": SEARCH},
    "far": {"bucket": "laion", "region": AWAY, "prefix": "far/", "suffix": "_READY", "input": JOB},
}
WATCH: dict[str, Any] = {
    "digits": {
        "git": "https://github.com/owner/digits.git",
        "branch": "main",
        "build": {"repository": "images", "build_arguments": {"EXTRA": "1"}},
    },
    "private": {"git": "https://git.example.com/owner/private.git", "build": {"repository": "images"}},
}
AROUND: dict[str, Any] = {
    "data_buckets": ["imagenet", "laion"],
    "git_hosts": {"github.com": "", "git.example.com": "git-token"},
    "regions": [{"region": HOME, "cidr": "10.70.0.0/16"}, {"region": AWAY}, {"region": THIRD}],
}
"""What these settings need of others."""


def campaign(**changes: object) -> dict[str, Any]:
    return {"drive-eu": {**CAMPAIGNS["drive-eu"], **changes}}


def watch(**changes: object) -> dict[str, Any]:
    return {"digits": {**WATCH["digits"], **changes}}
