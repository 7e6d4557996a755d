"""Lines with roles: as in a job with the backend ec2, and none in SageMaker."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contract.errors import InvalidRequest
from job_requests.reading import read
from tests.builders import LIMITS
from tests.functions.grid_plan.account import Account, plan
from tools.refusals.grids.yard import MANIFEST

CODE = "s3://yard-home/uploads/a.tar.gz"
ROLES: list[dict[str, Any]] = [
    {"name": "chief"},
    {"name": "ps", "count": 2, "ends": "served", "command": ["python", "train.py", "--serve"]},
]
LINE = {
    "backend": "ec2",
    "instance_types": ["g5.xlarge"],
    "code": CODE,
    "command": ["python", "train.py"],
    "roles": ROLES,
}


def planned(there: Account, *lines: Any, text: str = "", **given: Any) -> list[dict[str, Any]]:
    there.upload(text or "".join(json.dumps(one) + "\n" for one in lines))
    plan({"manifest": MANIFEST, **given})
    return [json.loads(one.request["input"]) for one in there.lines()]


def refused(there: Account, *lines: Any) -> str:
    with pytest.raises(InvalidRequest) as problem:
        planned(there, *lines)
    return str(problem.value)


def test_a_line_has_roles_as_a_job_has_them(there: Account) -> None:
    (asked,) = planned(there, LINE)
    assert asked["roles"] == ROLES
    request, problems = read(asked, LIMITS)
    assert (request.nodes, problems) == (3, [])


def test_a_sweep_reaches_every_command_of_a_line(there: Account) -> None:
    (asked,) = planned(there, {**LINE, "hyperparameters": {"lr": 0.1}})
    assert asked["command"] == ["python", "train.py", "--lr", "0.1"]
    assert [one.get("command") for one in asked["roles"]] == [None, ["python", "train.py", "--serve", "--lr", "0.1"]]


def test_a_sweep_reaches_a_role_once_that_takes_the_command_of_its_line(there: Account) -> None:
    """It runs that command with its arguments."""
    roles = [{"name": "chief"}, {"name": "ps", "ends": "served", "image": "images:v1", "arguments": ["--serve"]}]
    (asked,) = planned(there, {**LINE, "roles": roles, "hyperparameters": {"lr": 0.1}})
    assert asked["command"] == ["python", "train.py", "--lr", "0.1"]
    assert asked["roles"] == roles


@pytest.mark.parametrize("of_line", [{"image": "images:v1"}, {"image": "images:v1", "command": ["train"]}])
def test_a_sweep_becomes_arguments_of_a_role_where_the_line_has_an_image(
    there: Account, of_line: dict[str, Any]
) -> None:
    bare = {name: value for name, value in LINE.items() if name not in {"code", "command"}}
    roles = [{"name": "chief"}, {"name": "ps", "ends": "served", "arguments": ["--serve"]}]
    (asked,) = planned(there, {**bare, **of_line, "roles": roles, "hyperparameters": {"lr": 0.1}})
    assert asked["roles"][1]["arguments"] == ["--serve", "--lr", "0.1"]
    assert asked["arguments"] == ["--lr", "0.1"]


def test_a_sweep_becomes_arguments_of_a_role_that_has_an_image_alone(there: Account) -> None:
    bare = {name: value for name, value in LINE.items() if name not in {"code", "command"}}
    roles = [{"name": "chief", "image": "images:v1", "arguments": ["--fast"]}]
    (asked,) = planned(there, {**bare, "roles": roles, "hyperparameters": {"lr": 0.1}})
    assert asked["roles"][0]["arguments"] == ["--fast", "--lr", "0.1"]


SHELL = ["bash", "-c", "python t.py"]


@pytest.mark.parametrize(
    ("command", "swept", "warned"),
    [
        (SHELL, {"lr": 0.1}, True),
        (SHELL, {}, False),
        ([*SHELL, "x"], {"lr": 0.1}, False),
        (["python", "t.py"], {"lr": 0.1}, False),
    ],
)
def test_a_shell_of_a_role_that_swallows_hyperparameters_is_warned_of(
    there: Account, command: list[str], swept: dict[str, Any], *, warned: bool
) -> None:
    roles = [{"name": "chief"}, {"name": "ps", "ends": "served", "command": command}]
    there.upload(json.dumps({**LINE, "roles": roles, **({"hyperparameters": swept} if swept else {})}))
    plan({"manifest": MANIFEST})
    assert ("roles.1.command: a shell runs its last word" in "".join(there.grid().warnings)) is warned


def test_a_sweep_reaches_images_that_run_as_they_are(there: Account) -> None:
    """Neither the line nor the roles have a command or arguments to add to."""
    bare = {name: value for name, value in LINE.items() if name not in {"code", "command"}}
    roles = [{"name": "learner", "image": "images:v1"}, {"name": "actor", "image": "images:v1", "command": ["act"]}]
    (asked,) = planned(there, {**bare, "roles": roles, "hyperparameters": {"lr": 0.1}})
    assert asked["roles"][0]["arguments"] == ["--lr", "0.1"]
    assert asked["roles"][1]["arguments"] == ["--lr", "0.1"]
    assert read(asked, LIMITS)[1] == []


def test_a_sweep_reaches_arguments_that_a_line_has_for_its_roles(there: Account) -> None:
    bare = {name: value for name, value in LINE.items() if name not in {"code", "command"}}
    roles = [{"name": "learner", "image": "images:v1"}]
    (asked,) = planned(there, {**bare, "arguments": ["--fast"], "roles": roles, "hyperparameters": {"lr": 0.1}})
    assert asked["arguments"] == ["--fast", "--lr", "0.1"]
    assert asked["roles"] == roles


def test_a_cell_has_roles_as_json(there: Account) -> None:
    cells = ["ec2", "g5.xlarge", CODE, json.dumps(LINE["command"]), json.dumps(ROLES)]
    row = ",".join('"' + one.replace('"', '""') + '"' for one in cells)
    (asked,) = planned(there, text=f"backend,instance_types,code,command,roles\n{row}\n")
    assert asked["roles"] == ROLES


def test_what_admit_would_refuse_of_roles_plan_refuses_with_the_line(there: Account) -> None:
    said = refused(there, {**LINE, "roles": [{"name": "ps", "ends": "served"}]})
    assert "line 1: roles: none of them ends the job" in said
    assert "nodes: the request has roles" in refused(there, {**LINE, "instance_count": 2})


def test_a_line_of_sagemaker_has_no_roles(there: Account) -> None:
    """Its instance groups share one image and one entry point, and a training ends by one rule (docs/guides/roles.md)."""
    said = refused(there, {"backend": "sagemaker", "image": "images:v1", "roles": ROLES})
    assert "roles: is a field of jobs on clusters of our own; allowed: with the backend ec2, or left out" in said
