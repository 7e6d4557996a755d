"""Other people's eyes on the templates and the machine, on their own settings: what they find is mended or acknowledged.

Acknowledgements stand at their constructs (`stacks.parts.acknowledged`). A template that is wrong shows that each can fail.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks, HIPAASecurityChecks, NagPack, NIST80053R5Checks
from cfnlint.api import lint
from cfnlint.config import ManualArgs

import stacks.compliance
from app import build
from localaws.testing.waiting import HANG_S
from stacks.parts.acknowledged import acknowledge
from stacks.parts.compliance_findings import FINDINGS
from stacks.settings import BLOCK, Settings
from tests.stacks.machines import MACHINES
from tools.configurations import WIDE, ZONED
from tools.synthesis import CONTEXT, ROOT, Synthesised, definition

pytestmark = pytest.mark.at_length
VALIDATOR = ROOT / "node_modules" / ".bin" / "asl-validator"
CHECKOV = ROOT / "build" / "checkov" / "bin" / "checkov"
STACKS = ["foundation", "region-eu-central-1", "builds", "workflow", "grid", "reaper", "images"]
OPTIONAL = ["catalogue", "kubernetes"]
"""Stacks that only a setting brings."""
ELSEWHERE = ["region-us-east-1", "region-ap-south-1"]
WRONG = {"Resources": {"Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"Bucketname": "x"}}}}
WRONG_BUCKETS = {
    "Resources": {
        "Open": {"Type": "AWS::S3::Bucket"},
        "Known": {
            "Type": "AWS::S3::Bucket",
            "Metadata": {"checkov": {"skip": [{"id": "CKV_AWS_18", "comment": "A bucket of this test alone."}]}},
        },
    }
}
SENTENCE = 30
"""Shorter than this says nothing."""


# cfn-lint


def linted(template: str) -> list[str]:
    return [f"{match.rule.id} {match.message}" for match in lint(template, config=ManualArgs(regions=["eu-central-1"]))]


@pytest.mark.parametrize("stack", STACKS)
def test_cfn_lint_finds_nothing(
    deployment: Synthesised, wide: Synthesised, complying: Synthesised, zoned: Synthesised, stack: str
) -> None:
    assert linted(zoned.text(stack)) == []
    assert linted(deployment.text(stack)) == []
    assert linted(wide.text(stack)) == []
    assert linted(complying.text(stack)) == []


@pytest.mark.parametrize("stack", [*OPTIONAL, *ELSEWHERE])
def test_cfn_lint_finds_nothing_in_other_regions_and_what_a_setting_brings(wide: Synthesised, stack: str) -> None:
    assert linted(wide.text(stack)) == []


def test_cfn_lint_finds_what_is_wrong() -> None:
    assert linted(json.dumps(WRONG)) != []


# cdk-nag


def nagged(
    make: Callable[[cdk.App], None], folder: Path, packs: Sequence[type[NagPack]] = (AwsSolutionsChecks,)
) -> list[str]:
    """What rule packs say of an app; on the tree itself, so that no other synthesis has to wait for it."""
    app = cdk.App(context=CONTEXT | {"aws:cdk:disable-asset-staging": True}, outdir=str(folder))
    make(app)
    app.synth()
    return [
        f"{violation.rule_name} {resource.construct_path}"
        for pack in packs
        for violation in pack(app).validate_scope(app).violations
        for resource in violation.violating_resources
    ]


@pytest.mark.parametrize("changes", [{}, WIDE, ZONED | {"compliance": False}], ids=["default", "wide", "zoned"])
def test_cdk_nag_finds_nothing(changes: dict[str, Any], tmp_path: Path) -> None:
    assert nagged(lambda app: build(app, Settings.parse(CONTEXT[BLOCK] | changes)), tmp_path) == []


EVERY_PACK = (AwsSolutionsChecks, HIPAASecurityChecks, NIST80053R5Checks)


@pytest.mark.parametrize("changes", [{}, WIDE, ZONED], ids=["default", "wide", "zoned"])
def test_the_packs_of_hipaa_and_nist_find_nothing_where_the_settings_ask_for_compliance(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    complying = Settings.parse(CONTEXT[BLOCK] | changes | {"compliance": True})
    assert nagged(lambda app: build(app, complying), tmp_path, EVERY_PACK) == []


def test_no_finding_of_hipaa_and_nist_is_acknowledged_that_they_do_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacks.compliance, "acknowledge_findings", lambda _: None)
    complying = Settings.parse(CONTEXT[BLOCK] | WIDE | {"compliance": True})
    found = {line.partition(" ")[0] for line in nagged(lambda app: build(app, complying), tmp_path, EVERY_PACK)}
    assert found == {f"{pack}-{one.rule}" for one in FINDINGS for pack in one.packs}


def test_cdk_nag_finds_what_is_wrong_and_takes_an_acknowledgement(tmp_path: Path) -> None:
    def wrong(app: cdk.App) -> None:
        stack = cdk.Stack(app, "Wrong")
        s3.Bucket(stack, "Open")
        acknowledge(s3.Bucket(stack, "Known"), "A bucket of this test alone.", "AwsSolutions-S1", "AwsSolutions-S10")

    found = nagged(wrong, tmp_path)
    assert {"AwsSolutions-S1 Wrong/Open/Resource", "AwsSolutions-S10 Wrong/Open/Resource"} <= set(found)
    assert [one for one in found if "Known" in one] == []


# Checkov


Checked = dict[tuple[str, str], set[tuple[str, str]]]


@pytest.fixture(scope="module")
def checked(
    deployment: Synthesised,
    wide: Synthesised,
    complying: Synthesised,
    zoned: Synthesised,
    tmp_path_factory: pytest.TempPathFactory,
) -> Checked:
    """(folder, `failed` or `skipped`) to (finding, resource); one process for all templates, for it takes long to start."""
    if not CHECKOV.exists():
        pytest.fail("Checkov is not installed: run `make setup`")
    wrong = tmp_path_factory.mktemp("wrong")
    (wrong / "wrong.template.json").write_text(json.dumps(WRONG_BUCKETS))
    folders = {
        "default": deployment.folder,
        "wide": wide.folder,
        "complying": complying.folder,
        "zoned": zoned.folder,
        "wrong": wrong,
    }
    # File by file: an assembly has its assets beside its templates.
    files = [file for folder in folders.values() for file in sorted(folder.glob("*.template.json"))]
    given = [argument for file in files for argument in ("-f", str(file))]
    command = [str(CHECKOV), *given, "--framework", "cloudformation", "--skip-download", "--compact", "-o", "json"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(wrong)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S, env=environment)
    report = json.loads(done.stdout)
    assert report["summary"]["parsing_errors"] == 0
    return {
        (name, kind): {
            (one["check_id"], one["resource"])
            for one in report["results"][f"{kind}_checks"]
            if Path(one["file_abs_path"]).parent == folder
        }
        for name, folder in folders.items()
        for kind in ("passed", "failed", "skipped")
    }


@pytest.mark.parametrize("name", ["default", "wide", "complying", "zoned"])
def test_checkov_finds_nothing(checked: Checked, name: str) -> None:
    assert len(checked[name, "passed"]) > 100
    assert checked[name, "failed"] == set()


def test_checkov_finds_what_is_wrong_and_takes_an_acknowledgement(checked: Checked) -> None:
    assert ("CKV_AWS_18", "AWS::S3::Bucket.Open") in checked["wrong", "failed"]
    assert checked["wrong", "skipped"] == {("CKV_AWS_18", "AWS::S3::Bucket.Known")}


# asl-validator


def validated(machine: dict[str, Any], folder: Path) -> subprocess.CompletedProcess[str]:
    node = shutil.which("node")
    if node is None or not VALIDATOR.exists():
        pytest.fail("asl-validator is not installed: run `make setup`")
    file = folder / "machine.asl.json"
    file.write_text(json.dumps(machine))
    command = [node, str(VALIDATOR), "--json-path", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)


@pytest.mark.parametrize(("name", "stack"), MACHINES.items())
def test_the_asl_validator_finds_nothing(deployment: Synthesised, name: str, stack: str, tmp_path: Path) -> None:
    machine = definition(deployment.template(stack), name)
    named = json.loads(json.dumps(machine).replace("<AWS::Partition>", "aws"))
    for state in named["States"].values():
        if "FunctionName" in state.get("Arguments", {}):
            state["Arguments"]["FunctionName"] = "arn:aws:lambda:eu-central-1:111122223333:function:f"
    result = validated(named, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_asl_validator_finds_what_is_wrong(deployment: Synthesised, tmp_path: Path) -> None:
    wrong = deployment.machine
    wrong["States"]["Sync"]["Next"] = "Nowhere"
    assert validated(wrong, tmp_path).returncode != 0


# Acknowledgements


def test_every_acknowledgement_has_its_reason_in_a_sentence(deployment: Synthesised, wide: Synthesised) -> None:
    comments = {
        entry["comment"]
        for each in (deployment, wide)
        for template in each.stacks.values()
        for resource in template["Resources"].values()
        for entry in resource.get("Metadata", {}).get("checkov", {}).get("skip", [])
    }
    assert len(comments) >= 8
    comments |= {one.reason for one in FINDINGS}
    assert [one for one in comments if len(one) < SENTENCE or not one.endswith(".")] == []
