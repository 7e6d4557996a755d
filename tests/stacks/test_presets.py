"""Presets and required tags of the settings: what synth refuses, and which functions read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from app import build
from contract.codec import decode
from contract.request_rules import RULES_FILE, RequestRules
from stacks.request_settings import MOST_PRESET
from stacks.settings import BLOCK, BadSettings, Settings
from tests.stacks.campaigns import SEARCH
from tests.stacks.synth import function, variables
from tools.synthesis import CONTEXT, Synthesised, synthesise_once

GOOD: dict[str, Any] = {"instance_types": ["g5.xlarge"], "nodes": 2}
CHANGES: dict[str, Any] = {
    "presets": {"two-a10g": GOOD},
    "tags": {"CostCenter": "4711"},
    "required_tags": {"Project": ["apollo"], "CostCenter": []},
}
READERS = (("workflow", "admission"), ("grid", "planner"), ("search", "search"))
"""Stacks and functions that read requests."""


@pytest.fixture(scope="module")
def ruled() -> Synthesised:
    return synthesise_once(**CHANGES)


def parsed(**changes: object) -> Settings:
    return Settings.parse(CONTEXT[BLOCK] | changes)


def refused(**changes: object) -> str:
    with pytest.raises(BadSettings) as problem:
        parsed(**changes)
    return str(problem.value)


def refused_preset(preset: object, **changes: object) -> str:
    return refused(presets={"two": preset}, **changes)


@pytest.mark.parametrize(
    ("preset", "says"),
    [
        ({"nods": 2}, "presets.two.nods: there is no such field (did you mean nodes?)"),
        (
            {"nodes": "2"},
            'presets.two.nodes: "2" is not a whole number (numbers have no quotes); allowed: a whole number from 1',
        ),
        ({"nodes": 17}, "presets.two.nodes: 17 is too large; allowed: a whole number from 1 to 16 (limits.max_nodes"),
        ({"max_hours": 73}, "presets.two.max_hours: 73 is too large"),
        ({"preset": "other"}, "presets.two.preset: presets do not nest; allowed: left out"),
        ({"grid_line": {}}, "presets.two.grid_line: a grid alone writes it"),
        (
            {"dry_run": True},
            "presets.two.dry_run: no job that names the preset would start; allowed: left out",
        ),
        ({"dry_run": False}, "presets.two.dry_run: no job that names the preset would start"),
        ({"name": "mine"}, "presets.two.name: there is no such field"),
        ({"workbench": {}}, "presets.two.workbench: the deployment has no workbenches"),
        ({"tags": {"aws:x": "1"}}, "presets.two.tags.aws:x: is not a key for people"),
        ({"region": "us-east-1"}, "presets.two.region: the settings have no us-east-1; allowed: eu-central-1 (regions"),
        ({"regions": ["eu-west-1"]}, "presets.two.regions: the settings have no eu-west-1; allowed: eu-central-1"),
        (
            {"machine_image": "digits"},
            "presets.two.machine_image: the settings have no digits; allowed: none (machine_images)",
        ),
        ({"job_role": "corpus"}, "presets.two.job_role: the settings have no corpus; allowed: none (job_roles)"),
        (
            {"mounts": [{"from": "fsx:corpus", "at": "/data"}]},
            "presets.two.mounts: the settings have no fsx:corpus; allowed: none (file_systems)",
        ),
        ({"environment": {"A": "x" * MOST_PRESET}}, "presets.two has 20,"),
        ({}, "trainyard.presets.two is {}; allowed: at least 1 item"),
        ([], "trainyard.presets.two is []"),
        (None, "trainyard.presets.two is null"),
    ],
)
def test_a_wrong_preset_is_refused_at_synth_by_its_name(preset: object, says: str) -> None:
    assert says in refused_preset(preset)


def test_every_problem_of_every_preset_has_a_line() -> None:
    said = refused(presets={"one": {"nodes": 0}, "two": {"markt": "spot", "efa": "yes"}})
    assert [line.partition(": ")[0] for line in said.splitlines()] == [
        "trainyard.presets.one.nodes",
        "trainyard.presets.two.efa",
        "trainyard.presets.two.markt",
    ]


@pytest.mark.parametrize("name", ["Two", "2a", "two_a10g", "a", "two--a10g", "a" * 41])
def test_a_name_that_no_request_may_have_is_refused(name: str) -> None:
    assert "allowed: 2 to 40 lower-case letters, digits and single hyphens" in refused(presets={name: GOOD})


def test_a_type_that_no_request_may_have_is_refused() -> None:
    said = refused_preset(GOOD, limits={"instance_types": ["p5.*"]})
    assert "presets.two.instance_types: g5.xlarge is not allowed; allowed: p5.* (limits.instance_types)" in said


def test_a_tag_of_the_settings_in_a_preset_is_refused() -> None:
    assert "presets.two.tags.CostCenter: every job has CostCenter" in refused_preset(
        {"tags": {"CostCenter": "1"}}, tags={"CostCenter": "4711"}
    )


def test_a_value_in_a_preset_that_no_request_may_have_is_refused() -> None:
    said = refused_preset({"tags": {"Project": "mercury"}}, required_tags={"Project": ["apollo"]})
    assert "presets.two.tags.Project: mercury is not one of them; allowed: apollo" in said


def test_a_preset_has_no_tag_that_is_required_in_other_capitals() -> None:
    """Such a request could never have both: IAM takes them for one."""
    said = refused_preset({"tags": {"project": "apollo"}}, required_tags={"Project": ["apollo"]})
    assert (
        "presets.two.tags.project: the settings require Project; allowed: Project (required_tags in cdk.json)" in said
    )
    assert parsed(presets={"two": {"tags": {"Project": "apollo"}}}, required_tags={"Project": ["apollo"]}).presets


def test_a_preset_of_workbenches_has_no_field_that_no_workbench_can_have() -> None:
    bench = {"workbench": {"idle_minutes": 30}, "instance_types": ["g5.xlarge"]}
    assert parsed(presets={"bench": bench}, workbench=True).presets == {"bench": bench}
    said = refused(presets={"bench": {**bench, "command": ["train.py"]}}, workbench=True)
    assert "presets.bench.command: the request has a workbench" in said
    said = refused(presets={"bench": {**bench, "owner": " ada"}}, workbench=True)
    assert 'presets.bench.owner: " ada" is no name, and only its owner may open a workbench; allowed: ' in said


def test_a_preset_lacks_no_required_tag() -> None:
    assert parsed(presets={"two": GOOD}, required_tags={"Project": []}).presets == {"two": GOOD}


def test_what_the_settings_have_may_be_named() -> None:
    preset = {"regions": "auto", "machine_image": "digits", "job_role": "corpus"}
    settings = parsed(
        presets={"two": preset},
        machine_images={"digits": "ami-0123456789abcdef0"},
        job_roles={"corpus": "arn:aws:iam::111122223333:role/corpus"},
    )
    assert settings.rules.presets == {"two": preset}


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"manifest": "{data}/m.csv", "defaults": {"backend": "ec2", "preset": "large"}}, "input.defaults.preset"),
        ({**SEARCH, "template": {"backend": "ec2", "preset": "large"}}, "input.template.preset"),
    ],
)
def test_a_campaign_names_no_preset_that_there_is_not(given: dict[str, Any], where: str) -> None:
    campaigns = {"drive": {"prefix": "uploads/drive/", "suffix": "_READY", "input": given}}
    said = refused(presets={"two": GOOD}, campaigns=campaigns)
    assert f"campaigns.drive.{where} is large; allowed: two (presets in cdk.json)" in said
    assert parsed(presets={"large": GOOD}, campaigns=campaigns).campaigns


@pytest.mark.parametrize("field", ["defaults", "template"])
def test_a_preset_of_a_campaign_s_lines_is_named_by_a_text(field: str) -> None:
    given = {**(SEARCH if field == "template" else {"manifest": "{data}/m.csv"}), field: {"preset": 5}}
    said = refused(campaigns={"drive": {"prefix": "uploads/drive/", "suffix": "_READY", "input": given}})
    assert f"campaigns.drive.input.{field}.preset is 5; allowed: none (presets in cdk.json)" in said


def test_a_job_of_a_campaign_gets_what_its_preset_has() -> None:
    given = {"preset": "two", "code": "{data}/code.tar.gz", "command": ["train.py"]}
    campaigns = {"drive": {"prefix": "uploads/drive/", "suffix": "_READY", "input": given}}
    assert parsed(presets={"two": GOOD}, campaigns=campaigns).campaigns
    assert "campaigns.drive.input.preset: there is no two; allowed: large" in refused(
        presets={"large": GOOD}, campaigns=campaigns
    )


# Required tags


@pytest.mark.parametrize("key", ["aws:cost", "trainyard:job", "Name", "cost center", ""])
def test_a_tag_that_no_request_may_have_is_not_required(key: str) -> None:
    assert "trainyard.required_tags" in refused(required_tags={key: []})


def test_more_tags_than_a_request_may_have_are_not_required() -> None:
    assert "required_tags" in refused(required_tags={f"t{number}": [] for number in range(17)})


def test_the_settings_own_tag_has_a_value_that_they_allow() -> None:
    assert "tags.Stage is qa; allowed: dev, prod (required_tags)" in refused(
        tags={"Stage": "qa"}, required_tags={"Stage": ["dev", "prod"]}
    )


def test_a_key_is_required_as_the_settings_spell_it() -> None:
    assert "required_tags has stage, and tags has Stage" in refused(tags={"Stage": "qa"}, required_tags={"stage": []})


def test_keys_that_differ_in_capitals_alone_are_not_required_both() -> None:
    """No request could have both, so every one would be refused."""
    said = refused(required_tags={"Project": ["apollo"], "Stage": [], "project": []})
    assert said == (
        "trainyard.required_tags has Project and project; allowed: one of them, because IAM does not tell capitals apart in keys"
    )


@pytest.mark.parametrize("values", ["apollo", [7], [""], {"apollo": True}])
def test_allowed_values_are_a_list_of_texts(values: object) -> None:
    assert "trainyard.required_tags.Project" in refused(required_tags={"Project": values})


# Who reads them


def test_what_reads_requests_has_the_rules_in_its_archive(ruled: Synthesised) -> None:
    wanted = RequestRules(
        presets={"two-a10g": GOOD},
        tags={"CostCenter": "4711"},
        required_tags={"Project": ("apollo",), "CostCenter": ()},
    )
    assert parsed(**CHANGES).rules == wanted
    for stack, package in READERS:
        assert variables(function(ruled.template(stack), package))["TRAINYARD_RULES"] == RULES_FILE


def test_no_other_function_names_the_file(ruled: Synthesised) -> None:
    having = {
        one["Properties"]["Handler"].partition(".")[0]
        for template in ruled.stacks.values()
        for one in template["Resources"].values()
        if one["Type"] == "AWS::Lambda::Function"
        and "TRAINYARD_RULES" in one["Properties"].get("Environment", {}).get("Variables", {})
    }
    assert having == {package for _, package in READERS}


def test_a_deployment_without_rules_packs_none(deployment: Synthesised) -> None:
    assert not any("TRAINYARD_RULES" in json.dumps(template) for template in deployment.stacks.values())
    assert parsed().rules.file == ""


def test_the_archives_of_its_readers_have_the_rules_and_no_other_has(tmp_path: Path) -> None:
    stacks = [f"trainyard-{stack}" for stack, _ in READERS]
    app = cdk.App(
        context=CONTEXT | {"aws:cdk:disable-asset-staging": True, "aws:cdk:bundling-stacks": stacks},
        outdir=str(tmp_path),
    )
    build(app, Settings.parse(CONTEXT[BLOCK] | CHANGES))
    app.synth()
    found = list(tmp_path.rglob(RULES_FILE))
    having = {package for file in found for _, package in READERS if (file.parent / package / "handler.py").exists()}
    assert (len(found), having) == (3, {package for _, package in READERS})
    assert [decode(RequestRules, file.read_bytes()) for file in found] == [parsed(**CHANGES).rules] * 3
