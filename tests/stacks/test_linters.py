"""Other people's eyes on the templates and on the machine."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cfnlint.api import lint
from cfnlint.config import ManualArgs

from tests.stacks.synth import ROOT, Synthesised

HARMLESS = ["W3005"]
"""CDK writes dependencies that a reference makes already."""
VALIDATOR = ROOT / "node_modules" / ".bin" / "asl-validator"


def findings(template: str) -> list[str]:
    arguments = ManualArgs(regions=["eu-central-1"], ignore_checks=HARMLESS)
    return [f"{match.rule.id} {match.message}" for match in lint(template, config=arguments)]


@pytest.mark.parametrize("stack", ["foundation", "region-eu-central-1", "workflow"])
def test_cfn_lint_finds_nothing(deployment: Synthesised, stack: str) -> None:
    assert findings(deployment.text(stack)) == []


def test_cfn_lint_finds_what_is_wrong() -> None:
    wrong = {"Resources": {"Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"Bucketname": "x"}}}}
    assert findings(json.dumps(wrong)) != []


def validated(machine: dict[str, Any], folder: Path) -> subprocess.CompletedProcess[str]:
    node = shutil.which("node")
    if node is None or not VALIDATOR.exists():
        pytest.skip("asl-validator is not installed: run `make setup`")
    file = folder / "machine.asl.json"
    file.write_text(json.dumps(machine))
    command = [node, str(VALIDATOR), "--json-path", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_asl_validator_finds_nothing(machine: dict[str, Any], tmp_path: Path) -> None:
    named = json.loads(json.dumps(machine).replace("<AWS::Partition>", "aws"))
    for state in named["States"].values():
        if "Arguments" in state:
            state["Arguments"]["FunctionName"] = "arn:aws:lambda:eu-central-1:111122223333:function:f"
    result = validated(named, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_asl_validator_finds_what_is_wrong(machine: dict[str, Any], tmp_path: Path) -> None:
    wrong = json.loads(json.dumps(machine))
    wrong["States"]["Sync"]["Next"] = "Nowhere"
    assert validated(wrong, tmp_path).returncode != 0
