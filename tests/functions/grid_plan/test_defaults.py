"""What the deployment has chosen for lines that say nothing: grid.defaults in cdk.json."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from contract.environments import GridDefaults
from contract.errors import InvalidRequest
from contract.grid import GridPrefix
from tests.functions.grid_plan.account import account, plan
from tools.refusals.grids.yard import BUCKET, DEFAULTS, MANIFEST

TWO = "eu-central-1,s3://data-eu/train/\nus-east-1,s3://data-us/train/\n"


def line(**given: Any) -> str:
    return json.dumps({"region": "eu-central-1", "data": "s3://data-eu/train/"} | given) + "\n"


CHOSEN = GridDefaults(image=DEFAULTS["image"], instance_type="ml.g5.xlarge")


def test_where_the_deployment_has_chosen_two_columns_and_their_address_are_all_that_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with account(monkeypatch, CHOSEN) as there:
        there.upload(TWO)
        plan({"manifest": MANIFEST})
        first, second = there.lines()
    assert first.request["ResourceConfig"]["InstanceType"] == second.request["ResourceConfig"]["InstanceType"]
    assert first.request["ResourceConfig"]["InstanceType"] == "ml.g5.xlarge"
    assert (first.source["image"], first.source["instance_type"]) == (CHOSEN.image, CHOSEN.instance_type)


def test_what_a_line_or_the_input_says_goes_before_what_the_deployment_has_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with account(monkeypatch, CHOSEN) as there:
        there.upload(line(instance_type="ml.m5.large") + line(region="us-east-1", data="s3://data-us/train/"))
        plan({"manifest": MANIFEST, "defaults": {"instance_type": "ml.g5.12xlarge"}})
        types = [one.request["ResourceConfig"]["InstanceType"] for one in there.lines()]
    assert types == ["ml.m5.large", "ml.g5.12xlarge"]


@pytest.mark.parametrize(
    ("chosen", "problem"),
    [
        (replace(CHOSEN, image=""), "image: is missing"),
        (replace(CHOSEN, image="images:never-built"), "image: "),
        (
            replace(CHOSEN, instance_type="ml.p9.huge"),
            "instance_type: ml.p9.huge is not an instance type of SageMaker training",
        ),
        (
            replace(CHOSEN, instance_type="ml.p5.48xlarge"),
            "instance_type: ml.p5.48xlarge is not allowed in this deployment",
        ),
    ],
)
def test_what_the_deployment_has_chosen_is_checked_as_what_a_line_says(
    monkeypatch: pytest.MonkeyPatch, chosen: GridDefaults, problem: str
) -> None:
    with account(monkeypatch, chosen) as there:
        there.upload(TWO)
        with pytest.raises(InvalidRequest, match=re.escape(problem)):
            plan({"manifest": MANIFEST})
        assert there.s3.read(BUCKET, GridPrefix("sweep-7").description) is None
