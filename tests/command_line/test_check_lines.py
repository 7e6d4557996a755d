"""`check` judges the lines of a manifest, and those that a search's template makes, as Plan would without AWS."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line.account import run


def write(folder: Path, given: object, name: str = "job.json") -> Path:
    path = folder / name
    path.write_text(given if isinstance(given, str) else json.dumps(given))
    return path


JOB_LINE = {"backend": "ec2", "image": "images:v1", "instance_types": ["g5.xlarge"]}
NOT_HERE = [
    ({"region": "eu-west-9"}, "region: the deployment does not train in eu-west-9; allowed: eu-central-1"),
    ({"regions": ["eu-central-1", "us-east-1"]}, "regions: the deployment does not train in us-east-1"),
    ({"instance_types": ["g5.xlrage"]}, "instance_types: g5.xlrage does not exist in eu-central-1"),
    ({"instance_types": ["p3.2xlarge"]}, "instance_types: p3.2xlarge needs an image of family p3"),
    (
        {"mounts": [{"from": "fsx:corpus", "at": "/data"}]},
        "mounts.0.from: fsx:corpus names no file system in eu-central-1",
    ),
    (
        {"secrets": {"TOKEN": "arn:aws:secretsmanager:eu-central-1:111122223333:secret:other/token"}},
        "secrets.TOKEN: arn:aws:secretsmanager:eu-central-1:111122223333:secret:other/token is not a secret that jobs may read",
    ),
    ({"job_role": "datasets"}, "job_role: datasets is not a role of this deployment"),
    ({"machine_image": "digits"}, "machine_image: digits is not an image of this deployment"),
    ({"data": "s3://elsewhere/x"}, "data.0: s3://elsewhere/x is not in a bucket that jobs may read"),
    ({"code": "s3://elsewhere/c.zip"}, "code: s3://elsewhere/c.zip is not in a bucket that jobs may read"),
    ({"code": {"git": "https://git.example.com/a.git", "ref": "0" * 40}}, "git.example.com"),
    ({"market": "spot", "max_hours": 20, "checkpoint_minutes": 1000}, "checkpoint_minutes: a job of 20 h on spot"),
]
"""Fields of a job that no deployment with the settings of the checkout takes, whatever AWS has."""


@pytest.mark.parametrize(("fields", "says"), NOT_HERE, ids=lambda one: str(one)[:40])
def test_what_admit_would_refuse_of_a_line_without_asking_aws_is_said(
    tmp_path: Path, fields: dict[str, Any], says: str
) -> None:
    ran = run("check", write(tmp_path, json.dumps({**JOB_LINE, **fields}) + "\n", "m.jsonl"))
    assert ran.code == 2
    assert f"- line 1: {says}" in ran.err or (says in ran.err and "- line 1: code" in ran.err)


@pytest.mark.parametrize(("fields", "says"), NOT_HERE, ids=lambda one: str(one)[:40])
def test_it_is_said_of_the_template_of_a_search_too(tmp_path: Path, fields: dict[str, Any], says: str) -> None:
    search = {
        "template": {**JOB_LINE, **fields},
        "search": {"lr": {"float": [0.1, 1]}},
        "objective": {"metric": "metric", "direction": "minimize"},
        "trials": 4,
    }
    ran = run("check", write(tmp_path, search))
    assert ran.code == 2
    assert f"- template.{says}" in ran.err or (says in ran.err and "- template.code" in ran.err)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"instance_types": ["u7inh-32tb.480xlarge", "m7i.metal-24xl", "c7i-flex.large"]},
        {"instance_types": None, "accelerators": "H100:8"},
        {"launcher": "torchrun", "command": ["t.py"], "processes_per_node": 8},
        {"resume_from": "another"},
        {"reservation": "cr-00000000000000001"},
        {"regions": "auto", "max_cost_usd": 1, "efa": True, "nodes": 2},
    ],
)
def test_what_only_aws_could_object_to_in_a_line_is_not_objected_to(tmp_path: Path, fields: dict[str, Any]) -> None:
    line = {name: one for name, one in {**JOB_LINE, **fields}.items() if one is not None}
    ran = run("check", write(tmp_path, json.dumps(line) + "\n", "m.jsonl"))
    assert (ran.code, ran.err) == (0, "")


def test_a_distribution_that_no_launcher_reads_is_refused_in_a_manifest_and_in_a_template(tmp_path: Path) -> None:
    line = {"image": "images:v1", "instance_type": "ml.m5.large", "command": ["python", "t.py"], "distribution": "mpi"}
    says = "distribution: mpi is read by AWS's toolkit, whose start entrypoint replaces"
    assert f"- line 1: {says}" in run("check", write(tmp_path, json.dumps(line) + "\n", "m.jsonl")).err
    search = {
        "template": {**line, "metrics": {"a": "a=(.*)"}},
        "search": {"lr": {"float": [0.1, 1]}},
        "objective": {"metric": "a", "direction": "minimize"},
        "trials": 4,
    }
    assert f"- template.{says}" in run("check", write(tmp_path, search)).err
