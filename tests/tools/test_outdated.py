"""The table of `make outdated`, from what uv and npm print."""

from __future__ import annotations

import json

import pytest

from tools.outdated import OutdatedPackage, format_table, read_npm, read_uv

TREE = """\
trainyard v0.1.0
├── boto3 v1.44.5 (group: boto3) (latest: v1.44.8)
├── boto3 v1.44.5 (group: dev) (latest: v1.44.8)
├── moto[server] v5.2.5 (group: dev)
├── types-boto3[ec2, essential] v1.43.123 (group: dev) (latest: v1.44.0)
└── uv v0.13.8 (group: setup)
"""
BOTO3 = OutdatedPackage("boto3", "1.44.5", "1.44.8", "pyproject.toml")
CDK = OutdatedPackage("aws-cdk", "2.1148.1", "2.1149.0", "package.json")


def test_a_package_of_several_groups_is_one_row() -> None:
    assert read_uv(TREE) == {BOTO3, OutdatedPackage("types-boto3", "1.43.123", "1.44.0", "pyproject.toml")}


@pytest.mark.parametrize("current", [{"current": "2.1148.1"}, {}], ids=["installed", "not-installed"])
def test_a_package_of_npm_has_the_version_that_the_lock_pins(current: dict[str, str]) -> None:
    report = {"aws-cdk": {**current, "wanted": "2.1148.1", "latest": "2.1149.0", "dependent": "trainyard"}}
    assert read_npm(json.dumps(report)) == {CDK}


@pytest.mark.parametrize("report", ["", "{}\n"])
def test_npm_has_nothing_to_say_where_all_is_new(report: str) -> None:
    assert read_npm(report) == set()


def test_a_registry_that_does_not_answer_is_no_empty_table() -> None:
    with pytest.raises(SystemExit, match="npm outdated: request failed"):
        read_npm('{"error": {"code": "ECONNREFUSED", "summary": "request failed"}}')


def test_the_table_has_a_row_a_package_by_name() -> None:
    assert format_table({BOTO3, CDK}).splitlines() == [
        "package  pinned    newest    file",
        "aws-cdk  2.1148.1  2.1149.0  package.json",
        "boto3    1.44.5    1.44.8    pyproject.toml",
    ]
