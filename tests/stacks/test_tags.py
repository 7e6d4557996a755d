"""The settings' own tags: which are taken, what carries them, and what would be replaced with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest

from contract import tags
from contract.environments import GridEnvironment, LauncherEnvironment
from contract.tag_forms import MOST_OF_SETTINGS
from stacks.parts.tagging import REPLACED_WITH_THEIR_TAGS
from stacks.settings import BLOCK, BadSettings, Settings
from tests.stacks.synth import function, only, resources, variables
from tools.configurations import HOME
from tools.synthesis import CONTEXT, Synthesised, definition, synthesise_once

OURS = {"CostCenter": "4711", "team.name": "Vision Lab / Zürich"}


@pytest.fixture(scope="module")
def tagged() -> Synthesised:
    return synthesise_once(tags=OURS)


def parsed(given: object) -> Settings:
    return Settings.parse(CONTEXT[BLOCK] | {"tags": given})


def refusal(given: object) -> str:
    with pytest.raises(BadSettings) as problem:
        parsed(given)
    return str(problem.value)


def tags_of(properties: dict[str, Any]) -> dict[str, str]:
    found = properties["Tags"]
    return found if isinstance(found, dict) else {one["Key"]: one["Value"] for one in found}


# Which are taken


@pytest.mark.parametrize(
    "key", ["CostCenter", "cost-center", "a", "a" * 127, "team.name", "x@y", "a_b=c+d", "department:id"]
)
def test_a_key_that_every_service_takes_is_taken(key: str) -> None:
    assert parsed({key: "4711"}).tags == {key: "4711"}


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("cost center", ""),
        ("cost/center", ""),
        ("cost,center", ""),
        ("kosten-zürich", ""),
        ("", ""),
        ("a" * 128, ""),
        ("CostCenter\n", ""),
        ("aws:cost", "it begins with a reserved prefix"),
        ("AWS:cost", "it begins with a reserved prefix"),
        (tags.OWNER, "it begins with a reserved prefix"),
        (tags.DEPLOYMENT.title(), "it begins with a reserved prefix"),
        (tags.NAME, "it is Trainyard's own"),
        (tags.NAME.lower(), "it is Trainyard's own"),
        (tags.NAME.upper(), "it is Trainyard's own"),
    ],
)
def test_a_key_that_some_service_does_not_take_is_refused(key: str, why: str) -> None:
    assert "trainyard.tags" in (said := refusal({key: "4711"}))
    assert "allowed: 1 to 127 letters, digits and _.:=+@-, without aws:" in said
    assert why in said


@pytest.mark.parametrize("value", ["4711", "a b", "a" * 255, "Zürich", "_.:/=+-@", "研究"])
def test_a_value_that_every_service_takes_is_taken(value: str) -> None:
    assert parsed({"CostCenter": value}).tags == {"CostCenter": value}


@pytest.mark.parametrize(
    "value", ["", " a", "a ", "a" * 256, "a\n", "a;b", "{% $x %}", "a#b", "a\u200bb", "🚂", 4711, None]
)
def test_a_value_that_some_service_does_not_take_is_refused(value: object) -> None:
    assert "trainyard.tags.CostCenter is" in refusal({"CostCenter": value})


@pytest.mark.parametrize("value", ["4711", "Zürich", "研究", "_.:/=+-@", "a b"])
def test_what_values_may_be_is_what_the_models_of_aws_say(value: str) -> None:
    """CodeBuild's lengths are the least, and no model wants another character than the others."""
    models = botocore.session.get_session()
    for service, key, of_value in (
        ("iam", "tagKeyType", "tagValueType"),
        ("sagemaker", "TagKey", "TagValue"),
        ("codebuild", "KeyInput", "ValueInput"),
        ("ssm", "TagKey", "TagValue"),
    ):
        model = models.get_service_model(service)
        assert int(model.shape_for(key).metadata["max"]) >= 127
        assert int(model.shape_for(of_value).metadata["max"]) >= 255
        assert "\\p{L}\\p{Z}\\p{N}_.:/=" in model.shape_for(of_value).metadata["pattern"]
    assert parsed({"CostCenter": value})


def test_keys_that_differ_in_capitals_alone_are_refused() -> None:
    assert "tags has CostCenter and costcenter; allowed: one of them" in refusal({"CostCenter": "1", "costcenter": "2"})


def test_more_tags_than_leave_room_are_refused() -> None:
    assert parsed({f"t{number}": "1" for number in range(MOST_OF_SETTINGS)})
    assert "trainyard.tags has 21 entries; allowed: " in refusal(
        {f"t{number}": "1" for number in range(MOST_OF_SETTINGS + 1)}
    )


def test_tags_that_fill_the_variables_of_a_function_are_refused() -> None:
    assert "tags take 1032 characters as JSON; allowed: 1000" in refusal({f"t{n}": "v" * 248 for n in range(4)})
    assert parsed({f"t{n}": "v" * 240 for n in range(4)})


# What carries them


def taggable(deployment: Synthesised) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Every resource with tags: its name, its type, and what they are."""
    for stack, template in deployment.stacks.items():
        for name, one in template["Resources"].items():
            if "Tags" in one.get("Properties", {}):
                yield f"{stack}/{name}", one["Type"], tags_of(one["Properties"])


def test_every_resource_that_takes_tags_has_them(tagged: Synthesised, deployment: Synthesised) -> None:
    found = list(taggable(tagged))
    assert {name for name, _, _ in found} == {name for name, _, _ in taggable(deployment)}
    without = {kind for _, kind, there in found if not OURS.items() <= there.items()}
    assert without == set(REPLACED_WITH_THEIR_TAGS)


def test_what_cloudformation_replaces_with_its_tags_keeps_those_that_it_had(
    tagged: Synthesised, deployment: Synthesised
) -> None:
    before = {name: there for name, _, there in taggable(deployment)}
    kept = {name: there for name, kind, there in taggable(tagged) if kind in REPLACED_WITH_THEIR_TAGS}
    assert kept
    assert kept == {name: before[name] for name in kept}


def test_without_tags_in_the_settings_nothing_has_a_further_one(deployment: Synthesised) -> None:
    own = {tags.DEPLOYMENT, tags.NAME, "aws-cdk:subnet-name", "aws-cdk:subnet-type"}
    assert {key for _, _, there in taggable(deployment) for key in there} <= own
    assert "TRAINYARD_TAGS" not in deployment.text("workflow") + deployment.text("grid")


def test_the_launch_template_has_them_beside_the_tag_by_which_it_may_be_used(tagged: Synthesised) -> None:
    template = only(tagged.template(f"region-{HOME}"), "AWS::EC2::LaunchTemplate")
    (specification,) = template["TagSpecifications"]
    assert tags_of(specification) == OURS | {tags.DEPLOYMENT: "trainyard"}


def test_launcher_and_plan_are_told_of_them(tagged: Synthesised) -> None:
    for stack, package in (("workflow", "launcher"), ("grid", "planner")):
        told = variables(function(tagged.template(stack), package))
        assert json.loads(told["TRAINYARD_TAGS"]) == OURS
    launcher = LauncherEnvironment.read(variables(function(tagged.template("workflow"), "launcher")))
    assert launcher.tags == OURS
    assert GridEnvironment.read(variables(function(tagged.template("grid"), "planner"))).tags == OURS


def test_children_are_submitted_with_them(tagged: Synthesised) -> None:
    states = definition(tagged.template("grid"))["States"]["Submit"]["ItemProcessor"]["States"]
    for name in ("Single", "Array"):
        sent = states[name]["Arguments"]["Tags"]
        assert OURS.items() <= sent.items()
        assert sent[tags.DEPLOYMENT] == "trainyard"


def test_they_give_no_role_another_right(tagged: Synthesised) -> None:
    """No right to tag names the keys of a launch, so none has to follow the settings; the one that names keys stays as it is."""
    for stack, template in synthesise_once(tags={}).stacks.items():
        kind = "AWS::IAM::Policy"
        assert resources(tagged.stacks[stack], kind) == resources(template, kind)
