"""Presets and tags of the settings in a manifest: Plan fills lines on clusters of our own, and holds every line to required tags."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.codec import encode
from contract.environments import GridDefaults
from contract.errors import InvalidRequest
from contract.grid import Line
from contract.request_rules import RULES_FILE, RequestRules
from tests.functions.grid_plan.account import Account, account, plan
from tools.refusals.grids.yard import DEFAULTS, MANIFEST

PRESET = {"instance_types": ["g5.xlarge"], "command": ["python", "train.py"], "code": "s3://yard-home/uploads/a.tar.gz"}
RULES = RequestRules(
    presets={"small": {**PRESET, "nodes": 2, "max_cost_usd": 7, "environment": {"A": "1"}}, "short": {"max_hours": 1}},
    tags={"CostCenter": "4711"},
)
TYPE = "ml.m5.large"


@pytest.fixture
def ruled(tmp_path: Path) -> Iterator[Account]:
    """An account whose settings have presets, and a type for lines that name none."""
    with pytest.MonkeyPatch.context() as patch, account(patch, GridDefaults(image="", instance_type=TYPE)) as opened:
        write_rules(patch, tmp_path, RULES)
        yield opened


def write_rules(patch: pytest.MonkeyPatch, folder: Path, rules: RequestRules) -> None:
    """As a deploy packs them."""
    (folder / RULES_FILE).write_bytes(encode(rules))
    patch.setenv("TRAINYARD_RULES", str(folder / RULES_FILE))


def planned(there: Account, *lines: Any, **given: Any) -> list[Line]:
    there.upload("".join(json.dumps(one) + "\n" for one in lines))
    plan({"manifest": MANIFEST, **given})
    return there.lines()


def refused(there: Account, *lines: Any, **given: Any) -> list[str]:
    with pytest.raises(InvalidRequest) as problem:
        planned(there, *lines, **given)
    return [one.removeprefix("- line 1: ") for one in str(problem.value).split("\n")[1:]]


def request_of(line: Line) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line.request["input"])
    return found


def test_a_line_is_planned_with_the_fields_of_its_preset(ruled: Account) -> None:
    (line,) = planned(ruled, {"backend": "ec2", "preset": "small", "hyperparameters": {"lr": 0.1}})
    request = request_of(line)
    assert request["command"] == ["python", "train.py", "--lr", "0.1"]
    assert (request["nodes"], request["preset"]) == (2, "small")
    assert line.most_usd == 7


def test_a_preset_goes_before_the_type_of_the_settings(ruled: Account) -> None:
    (line,) = planned(ruled, {"backend": "ec2", "preset": "small"})
    assert request_of(line)["instance_types"] == ["g5.xlarge"]


def test_a_line_and_then_the_defaults_go_before_the_preset(ruled: Account) -> None:
    lines = planned(
        ruled,
        {"nodes": 3, "environment": {"B": "2"}},
        {},
        defaults={"backend": "ec2", "preset": "small", "nodes": 4},
        allow_duplicates=True,
    )
    first, second = map(request_of, lines)
    assert (first["nodes"], second["nodes"]) == (3, 4)
    assert first["environment"] == {"A": "1", "B": "2"}


def test_a_preset_that_there_is_not_is_all_that_is_wrong_with_its_line(ruled: Account) -> None:
    (reason,) = refused(ruled, {"backend": "ec2", "preset": "large"})
    assert reason.startswith("preset: there is no large; allowed: short, small (presets in cdk.json)")


def test_what_a_preset_does_not_bring_is_missing(ruled: Account) -> None:
    found = refused(ruled, {"backend": "ec2", "preset": "short"})
    assert any(one.startswith("code: is missing") for one in found)


def test_a_line_of_sagemaker_has_no_preset(ruled: Account) -> None:
    (reason,) = refused(ruled, {**DEFAULTS, "preset": "small"})
    assert reason.startswith("preset: is a field of jobs on clusters of our own; allowed: with the backend ec2")


def test_tags_of_a_line_become_those_of_its_job(ruled: Account) -> None:
    line = {"backend": "ec2", "preset": "small", "tags": {"Project": "apollo"}}
    found = planned(ruled, line, defaults={"tags": {"Stage": "dev"}, "backend": "ec2"})
    assert request_of(found[0])["tags"] == {"Project": "apollo", "Stage": "dev"}


def test_a_job_of_a_line_leaves_the_tags_of_the_settings_alone(ruled: Account) -> None:
    (reason,) = refused(ruled, {"backend": "ec2", "preset": "small", "tags": {"CostCenter": "1"}})
    assert reason.startswith("tags.CostCenter: every job has CostCenter with the value 4711")


def test_null_in_a_line_leaves_what_its_preset_gives(ruled: Account) -> None:
    """A cell without anything in it means the same."""
    (line,) = planned(ruled, {"backend": "ec2", "preset": "small", "max_cost_usd": None, "nodes": None})
    request = request_of(line)
    assert (request["max_cost_usd"], request["nodes"]) == (7, 2)


def test_a_line_is_no_workbench_by_its_preset_either(
    ruled: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = {"workbench": {}, "owner": "ada", "instance_types": ["g5.xlarge"]}
    write_rules(monkeypatch, tmp_path, RequestRules(presets={"bench": bench}, workbench=True))
    (reason,) = refused(ruled, {"backend": "ec2", "preset": "bench"})
    assert reason == "preset: has workbench, which means nothing with the backend ec2; allowed: a preset without it"


@pytest.mark.parametrize("key", ["costcenter", "COSTCENTER"])
def test_a_line_of_sagemaker_spells_a_tag_of_the_settings_as_they_do(
    ruled: Account, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("TRAINYARD_TAGS", json.dumps(RULES.tags))
    (reason,) = refused(ruled, {**DEFAULTS, "tags": {key: "1"}})
    assert reason == (
        f"tags.{key}: the settings spell it CostCenter (tags in cdk.json); allowed: CostCenter with a value, or another key"
    )
    assert planned(ruled, {**DEFAULTS, "tags": {"CostCenter": "1"}})


def test_tags_of_a_line_and_of_its_defaults_do_not_differ_in_capitals_alone(ruled: Account) -> None:
    (reason,) = refused(ruled, {"tags": {"stage": "qa"}}, defaults={**DEFAULTS, "tags": {"Stage": "dev"}})
    assert reason == "tags.Stage: the line has stage too; allowed: one of them"


@pytest.mark.parametrize("line", [{"backend": "ec2", "preset": "small"}, DEFAULTS], ids=["ec2", "sagemaker"])
def test_a_required_tag_in_other_capitals_is_another_tag(
    ruled: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: dict[str, Any]
) -> None:
    write_rules(monkeypatch, tmp_path, RequestRules(presets=RULES.presets, required_tags={"Project": ("apollo",)}))
    (reason,) = refused(ruled, {**line, "tags": {"project": "apollo"}})
    assert reason == "tags.Project: is missing (project is not it); allowed: apollo (required_tags in cdk.json)"


@pytest.mark.parametrize("line", [{"backend": "ec2", "preset": "small"}, DEFAULTS], ids=["ec2", "sagemaker"])
def test_every_line_must_have_a_required_tag(
    ruled: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: dict[str, Any]
) -> None:
    rules = RequestRules(presets=RULES.presets, required_tags={"Project": ("apollo",)})
    write_rules(monkeypatch, tmp_path, rules)
    (missing,) = refused(ruled, line)
    assert missing.startswith("tags.Project: is missing; allowed: apollo (required_tags in cdk.json)")
    (wrong,) = refused(ruled, {**line, "tags": {"Project": "mercury"}})
    assert wrong.startswith("tags.Project: mercury is not one of them; allowed: apollo")
    assert planned(ruled, {**line, "tags": {"Project": "apollo"}})
