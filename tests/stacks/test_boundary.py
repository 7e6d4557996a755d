"""A permissions boundary that cdk.json's context names is on every role of every stack, whoever made the role."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from app import build
from contract import names
from localaws.model import listed
from stacks.settings import BLOCK, Settings
from tests.stacks.synth import every, plain, resources
from tools.configurations import EXISTING, THREE
from tools.file_systems import EVERY
from tools.synthesis import CONTEXT, ROOT, Synthesised, synthesise_once

PAGE = ROOT / "docs" / "guides" / "landing-zones.md"
KEY = "@aws-cdk/core:permissionsBoundary"
NAME, ARN = "landing-zone", "arn:aws:iam::111122223333:policy/teams/landing-zone"
SETTINGS: dict[str, dict[str, Any]] = {
    "everything": {"regions": THREE, "compliance": True, "keep_data": False, "file_systems": EVERY},
    "a network that is there": {"regions": EXISTING},
}
KINDS = ("AWS::IAM::Role", "AWS::IAM::User")


def bounded(folder: Path, boundary: dict[str, str], settings: dict[str, Any]) -> Synthesised:
    context = CONTEXT | {"aws:cdk:disable-asset-staging": True, "aws:cdk:bundling-stacks": [], KEY: boundary}
    app = cdk.App(context=context, outdir=str(folder))
    build(app, Settings.parse(CONTEXT[BLOCK] | settings))
    app.synth()
    return Synthesised(folder)


@pytest.mark.parametrize("what", SETTINGS)
def test_every_role_of_every_stack_has_the_boundary(what: str, tmp_path: Path) -> None:
    deployment = bounded(tmp_path, {"name": NAME}, SETTINGS[what])
    found = [(name, one) for kind in KINDS for name, one in every(deployment, kind)]
    assert len(found) >= 30
    without = [name for name, one in found if "PermissionsBoundary" not in one]
    assert without == []
    assert {plain(one["PermissionsBoundary"]) for _, one in found} == {f"arn:aws:iam::111122223333:policy/{NAME}"}
    assert {stack for stack in deployment.stacks if f"{stack}/" not in "".join(name for name, _ in found)} == {
        stack for stack, template in deployment.stacks.items() if "AWS::IAM::Role" not in json.dumps(template)
    }


def test_it_may_be_named_by_its_arn(tmp_path: Path) -> None:
    deployment = bounded(tmp_path, {"arn": ARN}, {})
    assert {one.get("PermissionsBoundary") for _, one in every(deployment, "AWS::IAM::Role")} == {ARN}


def test_without_it_no_role_has_one(deployment: Synthesised) -> None:
    assert [name for name, one in every(deployment, "AWS::IAM::Role") if "PermissionsBoundary" in one] == []


def test_only_two_roles_have_names_so_that_a_deployer_may_be_kept_to_the_names_of_stacks(
    deployment: Synthesised,
) -> None:
    """CloudFormation names the others after their stacks, which begin with the deployment's name as these do."""
    named = {plain(one["RoleName"]) for _, one in every(deployment, "AWS::IAM::Role") if "RoleName" in one}
    home = Settings.parse(CONTEXT[BLOCK]).home_region
    assert named == {names.job_role("trainyard", home), names.training_role("trainyard", home)}
    assert all(name.startswith("trainyard-") for name in named)


# What docs/guides/landing-zones.md tells who writes the boundary, and who bootstraps


def services(begin: str) -> set[str]:
    """The services in the paragraph of the page that begins so."""
    (line,) = [one for one in PAGE.read_text().splitlines() if one.startswith(begin)]
    return set(re.findall(r"`([a-z0-9][a-z0-9-]*)`", line))


def test_the_page_lists_every_service_that_a_role_uses(tmp_path: Path) -> None:
    used = {
        action.partition(":")[0]
        for one in (bounded(tmp_path, {"name": NAME}, SETTINGS["everything"]), synthesise_once(regions=EXISTING))
        for template in one.stacks.values()
        for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
        for policy in resources(template, kind).values()
        for statement in policy["PolicyDocument"]["Statement"]
        for action in listed(statement["Action"])
    }
    assert services("`batch`, `cloudformation`") == used


MADE_BY = {"stepfunctions": "states"}
"""CloudFormation's word for a service to IAM's, where they differ."""


def test_the_page_lists_every_service_of_which_cloudformation_makes_something(tmp_path: Path) -> None:
    every_kind = {
        one["Type"]
        for template in bounded(tmp_path, {"name": NAME}, SETTINGS["everything"]).stacks.values()
        for one in template["Resources"].values()
    }
    words = {one.split("::")[1].lower() for one in every_kind if one.startswith("AWS::")}
    named = services("3. **CloudFormation's role**")
    assert {MADE_BY.get(word, word) for word in words} == named
