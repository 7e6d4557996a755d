"""What Admit refuses, field by field, and what it makes of the rest."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from admission.policy import Execution, Facts, admit, before_facts
from admission.request import Request, read, schema
from aws.facts import InstanceType, Object
from contract.errors import InvalidRequest
from contract.jobs import Image
from tests.builders import ADMISSION, IMAGE, NOW, PLACE

ROOT = Path(__file__).parents[2]
RAW: dict[str, Any] = {
    "code": "s3://yard-home/uploads/a.tar.gz",
    "command": ["python", "train.py"],
    "instance_types": ["g5.xlarge"],
}
EXECUTION = Execution(
    arn="arn:aws:states:eu-central-1:123456789012:execution:yard-train:job-1", name="job-1", started_at=NOW
)
G5 = InstanceType(name="g5.xlarge", architectures=("x86_64",), cluster=True, gpus=1)
FACTS = Facts(
    place=PLACE,
    types={"g5.xlarge": G5},
    zones={"g5.xlarge": {"eu-central-1a", "eu-central-1c"}},
    images={"x86_64": IMAGE},
    code=Object(bucket="yard-home", key="uploads/a.tar.gz", size=1000, version="v1"),
)


def ask(**fields: Any) -> Request:
    request = read({**RAW, **fields})
    assert isinstance(request, Request), request
    return request


def refused(facts: Facts = FACTS, **fields: Any) -> str:
    with pytest.raises(InvalidRequest) as problem:
        admit(ask(**fields), EXECUTION, facts, ADMISSION)
    return str(problem.value)


def test_the_least_request_becomes_a_job_with_sensible_defaults() -> None:
    job = admit(ask(), EXECUTION, FACTS, ADMISSION)
    assert (job.nodes, job.max_hours, job.volume_gb, job.checkpoint_minutes) == (1, 24.0, 100, 10.0)
    assert job.deadline == NOW + 24 * 3600
    assert [rung.zone for rung in job.ladder] == ["eu-central-1a", "eu-central-1c"]
    assert job.code.key == "jobs/job-1/code/code.tar.gz"
    assert job.code.source_version == "v1"


def test_one_node_needs_no_placement_group_and_two_get_one() -> None:
    assert not admit(ask(), EXECUTION, FACTS, ADMISSION).ladder[0].cluster
    assert admit(ask(nodes=2), EXECUTION, FACTS, ADMISSION).ladder[0].cluster


def test_a_command_given_as_text_is_split_as_a_shell_splits_words() -> None:
    assert ask(command="python train.py --name 'a b' $HOME;ls").command == [
        "python",
        "train.py",
        "--name",
        "a b",
        "$HOME;ls",
    ]


def test_odd_characters_are_kept_as_they_are() -> None:
    odd = ["python", "-c", 'print("{% $x %}\n\u202e\'`rm`")']
    assert ask(command=odd, environment={"A": "{% $states %}'\"\n"}).command == odd


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"code": None}, "code: Input should be a valid string"),
        ({"code": "https://x/y.zip"}, "code: is no S3 address"),
        ({"code": "s3:///a.zip"}, "code: has no valid bucket name"),
        ({"code": "s3://b/a/../../x.zip"}, "code: .*invalid|code: has"),
        ({"code": "s3://bucket/a.rar"}, "code: ends with none of"),
        ({"command": []}, "command: .*at least 1"),
        ({"command": ""}, "command: .*at least 1"),
        ({"command": "python 'x"}, "command: cannot be split"),
        ({"command": [""]}, "command: its first word"),
        ({"command": ["a", 1]}, r"command.1: .*valid string"),
        ({"command": ["a\0b"]}, "command: holds a NUL"),
        ({"command": {"a": 1}}, "command: .*valid list"),
        ({"instance_types": "g5.xlarge"}, "instance_types: .*valid list"),
        ({"instance_types": []}, "instance_types: .*at least 1"),
        ({"instance_types": ["G5"]}, "instance_types.0: .*match pattern"),
        ({"nodes": 0}, "nodes: .*greater than or equal to 1"),
        ({"nodes": -1}, "nodes:"),
        ({"nodes": "2"}, "nodes: .*valid integer"),
        ({"nodes": 1.5}, "nodes: .*valid integer"),
        ({"nodes": True}, "nodes:"),
        ({"market": "auction"}, "market:"),
        ({"max_hours": 0}, "max_hours: .*greater than 0"),
        ({"max_hours": float("nan")}, "max_hours: .*finite"),
        ({"max_hours": float("inf")}, "max_hours: .*finite"),
        ({"max_hours": "24"}, "max_hours: .*valid number"),
        ({"checkpoint_minutes": 0}, "checkpoint_minutes:"),
        ({"environment": {"1A": "x"}}, "environment: '1A' is no variable name"),
        ({"environment": {"A=B": "x"}}, "environment: .*no variable name"),
        ({"environment": {"MASTER_ADDR": "x"}}, "environment: MASTER_ADDR is set by Trainyard"),
        ({"environment": {"A": 1}}, "environment.A: .*valid string"),
        ({"secrets": {"A": "my-secret"}}, "secrets: A is not the ARN"),
        ({"data": ["s3://UPPER/x"]}, "data: has no valid bucket name"),
        ({"volume_gb": 0}, "volume_gb:"),
        ({"owner": "a\nb"}, "owner:"),
        ({"regions": ["eu-central-1"]}, "regions: there is no such field"),
        ({"instance_type": "g5"}, "instance_type: there is no such field; did you mean instance_types"),
    ],
    ids=str,
)
def test_a_wrong_field_is_refused_by_its_name(fields: dict[str, Any], words: str) -> None:
    problems = read({**RAW, **fields})
    assert isinstance(problems, list)
    import re

    assert any(re.search(words, line) for line in problems), problems


@pytest.mark.parametrize("raw", [None, [], "text", 3, {}])
def test_what_is_no_request_at_all_is_refused(raw: object) -> None:
    assert isinstance(read(raw), list)


def test_all_problems_are_told_at_once() -> None:
    problems = read({"code": 1, "nodes": 0, "colour": "red"})
    assert isinstance(problems, list)
    assert {line.split(":")[0] for line in problems} >= {"code", "nodes", "colour", "command", "instance_types"}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"market": "spot"}, "market: spot is not supported yet"),
        ({"max_cost_usd": 10}, "max_cost_usd: the cap is not enforced yet"),
        ({"nodes": 17}, "nodes: 17 asked for; allowed: 1 to 16"),
        ({"max_hours": 101}, "max_hours: 101 asked for; allowed: up to 100"),
        ({"volume_gb": 1001}, "volume_gb: 1001 asked for; allowed: up to 1000"),
        ({"instance_types": ["p5.48xlarge"]}, "instance_types: p5.48xlarge is not allowed"),
        ({"code": "s3://elsewhere/a.zip"}, "code: s3://elsewhere/a.zip is in no bucket that jobs may read"),
        ({"code": "s3://yard-home/jobs/x/code/a.zip"}, "code: .* is in no bucket that jobs may read"),
        ({"data": ["s3://yard-home/control/"]}, "data: .* is in no bucket"),
        (
            {"secrets": {"A": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:other-abc"}},
            "secrets: A's secret is not under the deployment's path",
        ),
        ({"volume_gb": 20}, "volume_gb: 20 asked for, the image .* needs at least 75"),
        ({"instance_types": ["g9.huge"]}, "instance_types: g9.huge does not exist in eu-central-1"),
    ],
    ids=str,
)
def test_what_the_deployment_does_not_allow_is_refused(fields: dict[str, Any], words: str) -> None:
    import re

    assert re.search(words, refused(**fields))


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (replace(FACTS, code=None), "code: there is no object"),
        (replace(FACTS, code=replace(FACTS.code, size=0) if FACTS.code else None), "code: .* is empty"),
        (replace(FACTS, code=replace(FACTS.code, size=6 * 1024**3) if FACTS.code else None), "code: .* has 6.0 GB"),
        (replace(FACTS, place=None), "region: eu-central-1 has no Region stack"),
        (replace(FACTS, zones={}), "instance_types: no zone of the deployment"),
        (replace(FACTS, images={"x86_64": None}), "instance_types: g5.xlarge needs an image of family x86_64"),
        (replace(FACTS, unreadable=("s3://datasets/x",)), "data: nothing readable at s3://datasets/x"),
        (replace(FACTS, secrets_missing=("KEY",)), "secrets: KEY's secret does not exist"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_aws_does_not_have_is_refused(facts: Facts, words: str) -> None:
    import re

    assert re.search(words, refused(facts))


@pytest.mark.parametrize("name", ["a" * 81, "a b", "a.b", "", "ü", "a/b"])
def test_a_name_that_cannot_be_a_job_id_is_refused(name: str) -> None:
    assert before_facts(ask(), replace(EXECUTION, name=name), ADMISSION)[0].startswith("name: ")


def test_a_name_of_eighty_letters_is_allowed() -> None:
    assert before_facts(ask(), replace(EXECUTION, name="a" * 80), ADMISSION) == []


def test_a_p3_needs_the_image_with_the_proprietary_driver() -> None:
    p3 = InstanceType(name="p3.2xlarge", architectures=("x86_64",), cluster=True)
    env = replace(ADMISSION, limits=replace(ADMISSION.limits, instance_types=("*",)))
    facts = replace(
        FACTS, types={"p3.2xlarge": p3}, zones={"p3.2xlarge": {"eu-central-1a"}}, images={"x86_64": IMAGE, "p3": None}
    )
    with pytest.raises(InvalidRequest, match="needs an image of family p3"):
        admit(ask(instance_types=["p3.2xlarge"]), EXECUTION, facts, env)


def test_a_large_image_enlarges_the_default_volume() -> None:
    facts = replace(FACTS, images={"x86_64": Image(id="ami-1", root_device="/dev/sda1", snapshot_gb=150)})
    assert admit(ask(), EXECUTION, facts, ADMISSION).volume_gb == 150


def test_the_published_schema_is_the_requests() -> None:
    assert json.loads((ROOT / "docs" / "request.schema.json").read_text()) == schema()
