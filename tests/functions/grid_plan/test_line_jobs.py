"""Lines on clusters of our own are judged as Admit would judge them, all at once, before anything starts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from aws import prices
from contract import keys, names
from contract.errors import InvalidRequest
from tests.archives import packed
from tests.fakes.wire import Call
from tests.functions.grid_plan.account import Account, judging, plan
from tests.functions.grid_plan.clusters import SECRET
from tools.refusals.grids.yard import ACCOUNT, BUCKET, DEFAULTS, HOME, MANIFEST

LEAST: dict[str, Any] = {"backend": "ec2", "instance_types": ["g5.xlarge"], "image": "images:v1"}
CODE = f"s3://{BUCKET}/{keys.UPLOADS}c.tar.gz"
READS = ("Get", "Head", "Describe", "List", "Query", "Batch")
"""How calls begin that change nothing."""


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with judging(monkeypatch) as made:
        yield made


def upload(there: Account, *lines: Any) -> None:
    bare = ({name: one for name, one in line.items() if one is not None} for line in lines)
    there.upload("".join(json.dumps(one) + "\n" for one in bare))


def refused(there: Account, *lines: Any, **given: Any) -> list[str]:
    upload(there, *lines)
    with pytest.raises(InvalidRequest) as problem:
        plan({"manifest": MANIFEST, **given})
    assert there.changes == []
    return [one.removeprefix("- ") for one in str(problem.value).split("\n")[1:]]


RIGHT = [
    {},
    {"region": "us-east-1"},
    {"region": "auto"},
    {"regions": ["us-east-1", HOME], "nodes": 2, "efa": "auto"},
    {"instance_types": None, "accelerators": "A10G:1"},
    {"launcher": "torchrun", "command": ["train.py"], "processes_per_node": 1},
    {"launcher": "torchrun", "command": ["train.py"], "processes_per_node": 4, "instance_types": ["g5.12xlarge"]},
    {"mounts": [{"from": "fsx:corpus", "at": "/data"}]},
    {"secrets": {"TOKEN": SECRET}},
    {"job_role": "datasets", "machine_image": "digits"},
    {"max_cost_usd": 5},
    {"volume_gb": 80},
    {"data": "s3://data-eu/train/"},
    {"code": CODE, "image": None, "command": ["python", "train.py"]},
    {"code": {"git": "https://git.example.com/a/b.git", "ref": "0" * 40}, "image": None, "command": ["python", "t.py"]},
    {"market": "spot", "max_hours": 20},
    {"roles": [{"name": "chief"}, {"name": "worker", "count": 2, "instance_types": ["g4dn.xlarge"]}]},
]


def test_what_admit_would_take_is_planned(there: Account) -> None:
    upload(there, *(LEAST | fields for fields in RIGHT))
    assert plan({"manifest": MANIFEST})["lines"] == len(RIGHT)


WRONG = [
    ({"region": "eu-west-9"}, "region: the deployment does not train in eu-west-9; allowed: eu-central-1, us-east-1"),
    ({"region": "us-west-2"}, "region: the deployment does not train in us-west-2"),
    ({"regions": [HOME, "eu-west-9"]}, "regions: the deployment does not train in eu-west-9"),
    ({"instance_types": ["g5.xlrage"]}, "instance_types: g5.xlrage does not exist in eu-central-1"),
    ({"instance_types": ["g5.xlarge", "g9.xlarge"]}, "instance_types: g9.xlarge does not exist in eu-central-1"),
    ({"instance_types": ["c7i.xlarge"]}, "instance_types: c7i.xlarge is not allowed in this deployment"),
    ({"instance_types": ["g5g.xlarge"]}, "instance_types: g5g.xlarge does not exist in eu-central-1"),
    ({"instance_types": ["p3.2xlarge"]}, "instance_types: p3.2xlarge needs an image of family p3"),
    ({"instance_types": None, "accelerators": "H900:8"}, "accelerators: no allowed type in eu-central-1 has H900:8"),
    ({"efa": True}, "efa: g5.xlarge has no EFA"),
    ({"image": "images:home", "region": "us-east-1"}, "image: images:home does not exist in us-east-1"),
    ({"image": "images:none"}, "image: images:none does not exist in eu-central-1"),
    ({"image": "images:arm"}, "image: images:arm is for arm64, and g5.xlarge has x86_64"),
    ({"image": "images:bare"}, "image: images:bare has no entry point and no command of its own"),
    ({"image": "images:bare", "hyperparameters": {"lr": 1}}, "arguments: images:bare has no entry point"),
    ({"image": f"999988887777.dkr.ecr.{HOME}.amazonaws.com/a/x:1"}, "is in a registry of account 999988887777"),
    ({"image": "images:v1", "health": "deep"}, "health: deep measures with the machine's PyTorch"),
    ({"mounts": [{"from": "fsx:none", "at": "/data"}]}, "mounts.0.from: fsx:none names no file system in eu-central-1"),
    ({"mounts": [{"from": "fsx:corpus", "at": "/data"}], "region": "us-east-1"}, "names no file system in us-east-1"),
    ({"secrets": {"T": SECRET.replace("/yard/", "/other/")}}, "is not a secret that jobs may read"),
    ({"secrets": {"T": f"{SECRET}-gone"}}, "does not exist or is being deleted"),
    ({"job_role": "none"}, "job_role: none is not a role of this deployment; allowed: datasets"),
    (
        {"job_role": "datasets", "environment": {"AWS_PROFILE": "x"}},
        "environment.AWS_PROFILE: replaces the credentials",
    ),
    ({"machine_image": "none"}, "machine_image: none is not an image of this deployment; allowed: digits"),
    ({"resume_from": "none"}, "resume_from: none is not a job of this deployment"),
    ({"reservation": "cr-0123456789abcdef0"}, "reservation: cr-0123456789abcdef0 is not in eu-central-1"),
    ({"max_cost_usd": 0.01}, "max_cost_usd: $0.01 pays for 0.5 min of 1 node of g5.xlarge"),
    (
        {"max_cost_usd": 9, "instance_types": ["g6.xlarge"]},
        "max_cost_usd: the price of g6.xlarge in eu-central-1 is not",
    ),
    ({"volume_gb": 10}, "volume_gb: 10 is too small for the image ami-"),
    ({"market": "spot", "max_hours": 20, "checkpoint_minutes": 1000}, "checkpoint_minutes: a job of 20 h on spot"),
    ({"data": "s3://foreign/x"}, "data.0: s3://foreign/x is not in a bucket that jobs may read"),
    ({"data": f"{CODE}"}, "is not in a bucket that jobs may read"),
    ({"data": "s3://partner/x"}, "data.0: s3://partner/x cannot be read"),
    ({"data": ["s3://data-eu/train/", "s3://data-eu/none/"]}, "data.1: there is nothing at s3://data-eu/none/"),
    ({"code": "s3://foreign/c.zip"}, "code: s3://foreign/c.zip is not in a bucket that jobs may read"),
    (
        {"code": CODE.replace("c.tar", "none.tar"), "image": None, "command": ["python", "t.py"]},
        "does not exist; allowed",
    ),
    ({"code": CODE, "image": None, "command": ["python", "other.py"]}, "command: runs other.py, which is not in"),
    ({"code": {"git": "https://nowhere.example.com/a.git", "ref": "0" * 40}}, "nowhere.example.com"),
    (
        {"roles": [{"name": "a", "instance_types": ["g5.xlrage"]}], "instance_types": None},
        "roles.0.instance_types: g5.xlrage",
    ),
]


@pytest.mark.parametrize(("fields", "says"), WRONG, ids=lambda one: str(one)[:60])
def test_what_admit_would_refuse_is_refused_before_anything_starts(
    there: Account, fields: dict[str, Any], says: str
) -> None:
    reasons = refused(there, LEAST | fields)
    assert any(one.startswith("line 1: ") and says in one for one in reasons), reasons


def test_more_processes_than_a_node_has_gpus_are_refused(there: Account) -> None:
    line = LEAST | {"launcher": "torchrun", "command": ["train.py"], "processes_per_node": 9}
    (reason,) = refused(there, line)
    assert reason.startswith("line 1: processes_per_node: 9 is too large for g5.xlarge, which has 1 GPU; allowed: auto")


def test_the_words_of_sagemaker_are_judged_too(there: Account) -> None:
    line = {"backend": "ec2", "image": "images:v1", "entrypoint": ["train.py"], "region": "eu-west-9"}
    first = line | {"instance_type": "ml.g5.xlarge", "distribution": "mpi", "processes_per_host": 2, "region": HOME}
    reasons = refused(
        there, first, line | {"instance_type": "ml.g5.xlarge"}, line | {"instance_type": "ml.g5.xlrage", "region": HOME}
    )
    assert [one.partition(": ")[2].partition(" ")[0] for one in reasons] == [
        "processes_per_node:",
        "region:",
        "instance_types:",
    ]


def test_every_wrong_line_is_named_at_once_beside_those_of_the_other_backends(there: Account) -> None:
    wrong = [fields for fields, _ in WRONG]
    reasons = refused(
        there,
        {"region": "mars-1"},
        LEAST,
        *(LEAST | fields for fields in wrong),
        LEAST | {"nodes": 0, "instance_types": ["g5.xlrage"]},
        defaults=DEFAULTS | {"volume_gb": 100},
    )
    named = {int(number) for one in reasons for number in one.partition(":")[0].split() if number.isdigit()}
    missed = [number for number in range(3, len(wrong) + 3) if not any(str(number) in one for one in reasons)]
    assert {1, len(wrong) + 3} <= named
    assert 2 not in named
    assert missed == []


def test_a_mistake_of_the_form_and_one_that_aws_knows_are_told_together(there: Account) -> None:
    reasons = refused(there, LEAST | {"nodes": 0, "instance_types": ["g5.xlrage"]})
    assert [one.split(":")[1].strip() for one in reasons] == ["nodes", "instance_types"]


def test_of_a_preset_without_a_name_nothing_else_is_said(there: Account) -> None:
    (reason,) = refused(there, {"backend": "ec2", "preset": "none"})
    assert reason.startswith("line 1: preset: there is no none")


def test_a_sweep_is_judged_as_its_line_is(there: Account) -> None:
    (reason,) = refused(there, LEAST | {"region": "eu-west-9", "sweep": {"lr": [1, 2, 3]}})
    assert reason.startswith("line 1: region: ")


def test_a_cap_of_the_grid_is_asked_for_only_where_nothing_else_stands_against_a_line(there: Account) -> None:
    reasons = refused(there, LEAST | {"region": "eu-west-9"}, LEAST | {"nodes": 2}, max_cost_usd=10)
    assert [one.split(": ")[:2] for one in reasons] == [["line 1", "region"], ["line 2", "max_cost_usd"]]


def test_a_function_without_the_settings_of_jobs_judges_the_form_alone(
    there: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRAINYARD_JOBS")
    upload(there, LEAST | {"region": "eu-west-9"})
    assert plan({"manifest": MANIFEST})["lines"] == 1


def list_lookups(there: Account) -> list[Call]:
    return [call for call in there.calls if call.service in ("ec2", "ecr", "ssm", "secretsmanager", "pricing")]


def test_plan_changes_nothing_to_judge_jobs(there: Account) -> None:
    refused(there, *(LEAST | fields for fields, _ in WRONG))
    assert {call.operation for call in there.calls if not call.operation.startswith(READS)} == set()


def test_a_thousand_lines_ask_aws_no_more_than_one_line_of_each_kind(there: Account) -> None:
    kinds = [LEAST, LEAST | {"region": "us-east-1"}, LEAST | {"secrets": {"TOKEN": SECRET}, "max_cost_usd": 9}]
    upload(there, *kinds)
    plan({"manifest": MANIFEST})
    of_kinds = [call.name for call in list_lookups(there)]
    there.calls.clear()
    many = (
        LEAST
        | kind
        | {"environment": {"SEED": str(seed)}, "hyperparameters": {"lr": seed}, "max_hours": 1 + seed / 1e4}
        for seed in range(333)
        for kind in kinds
    )
    upload(there, *many)
    plan({"manifest": MANIFEST}, {**RUN, "name": "many", "arn": RUN["arn"] + "many"})
    assert Counter(call.name for call in list_lookups(there)) <= Counter(of_kinds)


RUN = {
    "arn": f"arn:aws:states:{HOME}:{ACCOUNT}:execution:{names.grid_machine('yard')}:",
    "name": "",
    "started_at": "2026-11-21T10:00:00.000Z",
}


def test_prices_are_asked_for_only_where_a_cap_needs_them(there: Account) -> None:
    prices.forget()
    upload(there, LEAST)
    plan({"manifest": MANIFEST})
    assert [call.name for call in there.calls if call.service == "pricing" or "Spot" in call.operation] == []
    upload(there, LEAST | {"max_cost_usd": 9, "market": "spot"})
    plan({"manifest": MANIFEST}, {**RUN, "name": "dear", "arn": RUN["arn"] + "dear"})
    assert {call.operation for call in there.calls if call.service == "pricing"} == {"GetProducts"}
    assert [call.name for call in there.calls if "Spot" in call.operation] == []


def test_an_archive_is_read_once_for_all_lines_that_run_a_file_of_it(there: Account) -> None:
    body = packed("./a.py", "./b.py")
    there.s3.write(BUCKET, f"{keys.UPLOADS}c.tar.gz", body)
    line = {"backend": "ec2", "instance_types": ["g5.xlarge"], "code": CODE}
    upload(there, *(line | {"command": ["python", "a.py", str(number)]} for number in range(50)))
    plan({"manifest": MANIFEST})
    heads = [call for call in there.calls if call.operation == "HeadObject" and call.params["Key"].endswith("c.tar.gz")]
    assert len(heads) == 1
