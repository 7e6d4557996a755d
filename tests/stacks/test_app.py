"""The app as a whole: the same templates wherever it runs, and settings that change what they say they change."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from contract import names
from localaws.testing.waiting import HANG_S
from stacks.parts.assembled import Assembled, NotSetUp
from stacks.settings import BLOCK, Settings
from tests.stacks.synth import artifacts, resources, stacks
from tools.configurations import EVERYTHING
from tools.synthesis import CONTEXT, ROOT, Synthesised, definition, masked, synthesise, synthesise_once
from trainyard.account import list_stacks

TIMING_VARIABLE = "TRAINYARD_TIMING"
TIMED = ("States", "TimeoutSeconds")
"""What of a definition the durations are in."""
TIMING_STATES = {
    ("Admit", "Arguments"),
    ("Admit", "Retry"),
    ("Launch", "Arguments"),
    ("Launch", "Retry"),
    ("Lost heartbeat", "Choices"),
    ("Wait for capacity", "HeartbeatSeconds"),
    ("Train", "HeartbeatSeconds"),
    ("Train", "Retry"),
    ("Train", "TimeoutSeconds"),
    ("Sync", "Arguments"),
    ("Sync", "Retry"),
    ("Terminate", "Retry"),
    ("Terminate", "Assign"),
    ("Decide", "Choices"),
}


def run(folder: Path, context: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """`python app.py` as the command line calls it, without an account, a home, and the tests' environment."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONHASHSEED": "7",
        "CDK_VALIDATION": "false",
        "CDK_CONTEXT_JSON": json.dumps(context),
        "CDK_OUTDIR": str(folder / "out"),
    }
    command = [sys.executable, "app.py"]
    return subprocess.run(
        command, cwd=ROOT, env=environment, umask=0o077, capture_output=True, text=True, check=False, timeout=HANG_S
    )


@pytest.mark.parametrize("changes", [{}, EVERYTHING, {"dashboard": False}], ids=["least", "everything", "no dashboard"])
def test_the_doctor_knows_every_stack_that_settings_bring(changes: dict[str, Any]) -> None:
    synthesised = artifacts(synthesise_once(**changes))
    deployed = {
        name: one["environment"].rpartition("/")[2]
        for name, one in synthesised.items()
        if one["type"] == "aws:cloudformation:stack"
    }
    settings = Settings.parse(CONTEXT[BLOCK] | changes)
    known = list_stacks(settings)
    assert known.keys() == deployed.keys()
    regions = {name: where for name, where in deployed.items() if where != "unknown-region"}
    assert {name: known[name] for name in regions} == regions


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """The same deployment by another process, of somebody who keeps files to themselves: umask 077."""
    folder = tmp_path_factory.mktemp("other")
    result = run(folder, CONTEXT)
    assert result.returncode == 0, result.stderr
    return Synthesised(folder / "out")


def unreadable(folder: Path) -> list[str]:
    """Files that others may not read, and folders that others may not look into."""
    paths = [folder, *folder.rglob("*")]
    return [str(path) for path in paths if path.stat().st_mode & 0o777 != (0o755 if path.is_dir() else 0o644)]


def test_whatever_the_umask_others_may_read_each_file_and_folder_that_is_deployed(other: Synthesised) -> None:
    """Lambda reads what it unpacks as another user: EACCES, five minutes of time-outs and a rollback."""
    found = set(other.folder.glob("asset.*"))
    # Of an archive that was made already CDK leaves a folder with an empty file beside what it deploys.
    assets = sorted(path for path in found if path.with_name(f"{path.name}.zip") not in found)
    assert len(assets) > 15
    assert any((asset / "python" / "boto3").is_dir() for asset in assets), "the layer is among them"
    assert any((asset / "Dockerfile").is_file() for asset in assets), "the context of an image is among them"
    assert [path for asset in assets for path in unreadable(asset)] == []


def test_sources_that_nobody_else_may_read_are_deployed_readable(tmp_path: Path) -> None:
    """What git writes, and uv installs, has the umask of the clone."""
    secret = tmp_path / "source" / "package"
    secret.mkdir(parents=True)
    (secret / "a.py").write_text("a = 1\n")
    (secret / "a.py").chmod(0o600)
    for folder in (secret, secret.parent):
        folder.chmod(0o700)
    out = tmp_path / "out"
    out.mkdir(mode=0o700)
    Assembled({"package": secret, "alone.py": secret / "a.py"}).try_bundle(str(out), image=None)  # type: ignore[arg-type]
    assert unreadable(out) == []


def test_another_process_makes_the_same_bytes(deployment: Synthesised, other: Synthesised) -> None:
    assert {name: other.text(name.removeprefix("trainyard-")) for name in other.stacks} == {
        name: deployment.text(name.removeprefix("trainyard-")) for name in deployment.stacks
    }


def test_bad_settings_end_with_a_line_and_not_with_a_traceback(tmp_path: Path) -> None:
    result = run(tmp_path, CONTEXT | {BLOCK: {"netwrk": {}}})
    assert result.returncode == 1
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("trainyard.netwrk is not a setting (did you mean network?); allowed: ")
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_settings_that_are_too_deep_for_the_cdk_itself_end_with_a_line(tmp_path: Path) -> None:
    inner: object = 1
    for _ in range(900):
        inner = [inner]
    result = run(tmp_path, CONTEXT | {BLOCK: {"campaigns": inner}})
    assert result.returncode == 1
    assert result.stderr.strip() == (
        "trainyard is nested too deep for the CDK; allowed: up to 100 objects and lists in each other"
    )


def test_what_is_not_set_up_says_how_to_set_it_up() -> None:
    with pytest.raises(NotSetUp, match=r"build/no-such-thing is missing: run `make setup`"):
        Assembled({"x": ROOT / "build" / "no-such-thing"})


def test_an_archive_has_no_bytecode_and_nothing_twice(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "__pycache__").mkdir(parents=True)
    (source / "__pycache__" / "a.cpython-313.pyc").write_bytes(b"")
    (source / "a.py").write_text("a = 1\n")
    script = tmp_path / "script.sh"
    script.write_text("#!/bin/bash\n")
    bundle = Assembled({"package": source, "package/script.sh": script, ".": source})
    assert bundle.try_bundle(str(tmp_path / "out"), image=None)  # type: ignore[arg-type]
    found = sorted(str(one.relative_to(tmp_path / "out")) for one in (tmp_path / "out").rglob("*") if one.is_file())
    assert found == ["a.py", "package/a.py", "package/script.sh"]


def test_every_stack_carries_the_deployments_name(deployment: Synthesised) -> None:
    assert deployment.stacks.keys() == stacks("trainyard", "eu-central-1")


def test_the_reaper_and_its_alarms_stand_before_anything_that_can_start_something(deployment: Synthesised) -> None:
    """A stack that fails keeps only those from being deployed that come after it. A region's stack starts nothing."""
    manifest = artifacts(deployment)
    regions = {names.region_stack("trainyard", one.region) for one in Settings.parse(CONTEXT[BLOCK]).regions}
    needed = set(manifest["trainyard-reaper"]["dependencies"]) & set(deployment.stacks)
    assert needed == {"trainyard-foundation", *regions}
    for starts in ("workflow", "grid"):
        assert "trainyard-reaper" in manifest[f"trainyard-{starts}"]["dependencies"]
    assert [name for name in names_in(deployment, "reaper") if "workflow" in name or "grid" in name] == []


def test_every_stack_that_can_start_something_drains_before_anything_of_it_is_taken_away(
    deployment: Synthesised,
) -> None:
    """Whichever a destroy begins with, and whichever a deploy that failed left out. CloudFormation deletes what depends before
    what it depends on."""
    tokens = set()
    for stack in ("reaper", "workflow", "grid"):
        every = deployment.template(stack)["Resources"]
        (drain,) = [name for name, one in every.items() if one["Type"] == "Custom::Drain"]
        queries = {name for name, one in every.items() if one["Type"] == "AWS::Logs::QueryDefinition"}
        assert set(every[drain]["DependsOn"]) == every.keys() - {drain} - queries  # nothing runs by a saved query
        assert [name for name in every if drain in json.dumps(every[name])] == []
        tokens.add(json.dumps(every[drain]["Properties"].get("ServiceToken")))
    assert len(tokens) == 2, "the reaper's own, and what it lends to the others"
    for stack, template in deployment.stacks.items():
        machines = resources(template, "AWS::StepFunctions::StateMachine").values()
        starts = [one for one in machines if one["StateMachineName"] in {"trainyard-train", "trainyard-grid"}]
        assert bool(starts) <= bool(resources(template, "Custom::Drain")), stack


def names_in(deployment: Synthesised, stack: str) -> list[str]:
    """What a stack imports."""
    return re.findall(r'"Fn::ImportValue": "([^"]+)"', deployment.text(stack))


def test_no_stack_lends_another_something_that_changes_with_every_version(deployment: Synthesised) -> None:
    """CloudFormation replaces nothing that another stack imports, and a layer is replaced with every new library."""
    for template in deployment.stacks.values():
        lent = {json.dumps(one["Value"]) for one in template.get("Outputs", {}).values() if "Export" in one}
        layers = resources(template, "AWS::Lambda::LayerVersion")
        assert [name for name in layers for value in lent if name in value] == []


def test_two_timings_differ_only_where_something_waits(deployment: Synthesised, faster: Synthesised) -> None:
    other = faster
    for stack in ("foundation", "region-eu-central-1"):
        assert masked(other.text(stack)) == masked(deployment.text(stack))
    for stack, states in (("workflow", TIMING_STATES), ("reaper", {("Drain", "Retry")})):
        before, after = definition(deployment.template(stack)), definition(other.template(stack))
        different = {
            (name, key)
            for name, state in before["States"].items()
            for key in state
            if state[key] != after["States"][name][key]
        }
        assert different == states
        for state in (*before["States"].values(), *after["States"].values()):
            state.get("Arguments", {}).get("Payload", {}).pop("patience", None)
        arguments = [{name: state.get("Arguments") for name, state in one["States"].items()} for one in (before, after)]
        assert arguments[0] == arguments[1]
        assert before | dict.fromkeys(TIMED, "") == after | dict.fromkeys(TIMED, "")
        assert _without_timing(deployment, stack) == _without_timing(other, stack)


def test_a_divided_timing_is_divided_in_the_machine(faster: Synthesised) -> None:
    states = faster.machine["States"]
    assert states["Train"]["HeartbeatSeconds"] == 15
    assert "$deadline + 15 " in states["Train"]["TimeoutSeconds"]
    (pending,) = (one for one in states["Launch"]["Retry"] if one["ErrorEquals"] == ["CapacityPending"])
    assert pending["IntervalSeconds"] == 3
    assert states["Terminate"]["Retry"][-1]["IntervalSeconds"] == 1


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """Another name in another region, and settings that make more of what a region has."""
    return synthesise(
        tmp_path_factory.mktemp("lab"),
        deployment="lab",
        home_region="us-east-2",
        regions=[{"region": "us-east-2", "cidr": "10.9.0.0/20"}],
        network={"nat_gateways": 3, "interface_endpoints": ["ecr.api", "logs"]},
        placement_groups_per_zone=1,
        data_buckets=["imagenet"],
        images={"arm64": "/lab/images/arm", "x86_64": "ami-0123456789abcdef0"},
    )


def test_another_name_and_region_reach_every_name(lab: Synthesised) -> None:
    assert lab.stacks.keys() == stacks("lab", "us-east-2")
    for stack, template in lab.stacks.items():
        text = json.dumps(template)
        # The tag keys, the variables and descriptions have the product's name; no name of a resource has it.
        for word in ("trainyard-", "/trainyard/trainyard/", "eu-central-1", '"trainyard"'):
            assert word not in text.replace("lab-", ""), (stack, word)


def test_endpoints_gateways_and_data_buckets_are_as_many_as_asked_for(lab: Synthesised) -> None:
    region = lab.template("region-us-east-2")
    assert len(resources(region, "AWS::EC2::NatGateway")) == 3
    assert len(resources(region, "AWS::EC2::PlacementGroup")) == 3
    endpoints = resources(region, "AWS::EC2::VPCEndpoint").values()
    private = [one["PrivateDnsEnabled"] for one in endpoints if one["VpcEndpointType"] == "Interface"]
    assert private == [True, True]
    assert not any("SecurityGroupIngress" in one for one in resources(region, "AWS::EC2::SecurityGroup").values())
    rules = resources(region, "AWS::EC2::SecurityGroupIngress").values()
    assert len([one for one in rules if one["IpProtocol"] == "tcp"]) == 16, "one for each group of nodes"
    for stack in ("foundation", "workflow"):
        assert "s3:::imagenet/*" in plain_text(lab, stack)
    assert "parameter/lab/images/arm" in plain_text(lab, "workflow")
    assert "parameter/ami-" not in plain_text(lab, "workflow")


def plain_text(deployment: Synthesised, stack: str) -> str:
    return deployment.text(stack).replace('"},":', "")


def _without_timing(deployment: Synthesised, stack: str) -> Any:
    template = deployment.template(stack)
    for function in resources(template, "AWS::Lambda::Function").values():
        function["Environment"]["Variables"].pop(TIMING_VARIABLE, None)
    for machine in resources(template, "AWS::StepFunctions::StateMachine").values():
        machine.pop("DefinitionString")
    return json.loads(masked(json.dumps(template)))
