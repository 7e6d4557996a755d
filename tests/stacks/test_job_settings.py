"""The settings of jobs by which Plan and the search judge lines as Admit would: who has them, and that they are Admit's own."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import aws_cdk as cdk
import pytest

from app import build
from contract.codec import decode, encode
from contract.environments import AdmissionEnvironment, JobChecksEnvironment
from contract.job_settings import SETTINGS_FILE, JobSettings
from stacks.settings import BLOCK, Settings
from tests.stacks.synth import function, variables
from tools.synthesis import CONTEXT, Synthesised

JUDGES = (("grid", "planner"), ("search", "search"))
"""Stacks and functions that judge lines."""


def test_those_that_judge_lines_have_the_settings_and_no_others(deployment: Synthesised) -> None:
    for stack, package in JUDGES:
        assert variables(function(deployment.template(stack), package))["TRAINYARD_JOBS"] == SETTINGS_FILE
    having = {
        one["Properties"]["Handler"].partition(".")[0]
        for template in deployment.stacks.values()
        for one in template["Resources"].values()
        if one["Type"] == "AWS::Lambda::Function"
        and "TRAINYARD_JOBS" in one["Properties"].get("Environment", {}).get("Variables", {})
    }
    assert having == {package for _, package in JUDGES}


def test_admit_is_told_the_same() -> None:
    names = {one.name for one in fields(JobSettings)}
    assert names <= {one.name for one in fields(JobChecksEnvironment)}
    assert names <= {one.name for one in fields(AdmissionEnvironment)}


@pytest.mark.parametrize(
    "changes", [{}, {"machine_images": {"digits": "/lab/digits"}, "copy_accounts": ["777788889999"]}]
)
def test_the_archives_of_those_have_them(tmp_path: Path, changes: dict[str, object]) -> None:
    stacks = [f"trainyard-{stack}" for stack, _ in JUDGES]
    app = cdk.App(
        context=CONTEXT | {"aws:cdk:disable-asset-staging": True, "aws:cdk:bundling-stacks": stacks},
        outdir=str(tmp_path),
    )
    settings = Settings.parse(CONTEXT[BLOCK] | changes)
    build(app, settings)
    app.synth()
    found = list(tmp_path.rglob(SETTINGS_FILE))
    having = {package for file in found for _, package in JUDGES if (file.parent / package / "handler.py").exists()}
    assert (len(found), having) == (2, {package for _, package in JUDGES})
    for file in found:
        assert decode(JobSettings, file.read_bytes()) == decode(JobSettings, encode(settings.jobs))
