"""The Images stack: what asks for a build, what waits for it, and that it keeps nothing else from being deployed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contract import names
from contract.image_environments import OwnImagesEnvironment
from stacks.grid_settings import GridSettings
from stacks.parts import own_images
from stacks.parts.assembled import NotSetUp
from stacks.parts.own_images import child_tag
from tests.stacks.synth import artifacts, function, only, plain, variables
from tools.synthesis import Synthesised, definition

BASE = GridSettings().child_base


@pytest.fixture(scope="module")
def images(deployment: Synthesised) -> dict[str, Any]:
    return deployment.template("images")


@pytest.fixture(scope="module")
def machine(images: dict[str, Any]) -> dict[str, Any]:
    """The machine that waits."""
    return definition(images, names.image_machine("trainyard"))


def find_request(images: dict[str, Any]) -> dict[str, Any]:
    return only(images, "Custom::OwnImage")


def test_what_changes_a_build_changes_the_request_and_nothing_else_does(images: dict[str, Any]) -> None:
    given = find_request(images)
    assert given["Tag"] == child_tag(BASE)
    assert given["Regions"] == ["eu-central-1"]
    assert set(given) == {"ServiceToken", "ServiceTimeout", "Tag", "Base", "Bucket", "Key", "Regions"}


def test_the_batch_job_pulls_the_image_that_the_deploy_builds(deployment: Synthesised) -> None:
    image = plain(only(deployment.template("grid"), "AWS::Batch::JobDefinition")["ContainerProperties"]["Image"])
    assert image.endswith(f"/{names.repository('trainyard', names.PLATFORM)}:{child_tag(BASE)}")


def test_a_deploy_is_answered_in_the_time_that_cloudformation_waits(
    images: dict[str, Any], machine: dict[str, Any]
) -> None:
    patience = OwnImagesEnvironment.read(variables(function(images, "own_images"))).timing.image_patience_s
    build = machine["States"]["Build"]
    again = build["Retry"][0]
    assert again["ErrorEquals"] == ["StillBuilding"]
    assert again["IntervalSeconds"] * again["MaxAttempts"] > patience
    assert patience + again["IntervalSeconds"] + build["TimeoutSeconds"] < int(find_request(images)["ServiceTimeout"])


def test_the_machine_never_ends_before_cloudformation_gives_up(images: dict[str, Any], machine: dict[str, Any]) -> None:
    assert machine["TimeoutSeconds"] > int(find_request(images)["ServiceTimeout"]) == 3600


def test_every_end_is_answered(machine: dict[str, Any]) -> None:
    states = machine["States"]
    assert states["Build"]["Next"] == "Answer"
    assert [(one["ErrorEquals"], one["Next"]) for one in states["Build"]["Catch"]] == [(["States.ALL"], "Answer")]
    assert states["Answer"]["Retry"][0]["ErrorEquals"] == ["States.ALL"]


def test_nothing_depends_on_the_images_and_they_on_all_else_but_the_dashboard(deployment: Synthesised) -> None:
    stacks = {name: one for name, one in artifacts(deployment).items() if one["type"] == "aws:cloudformation:stack"}
    needs = {name: set(one.get("dependencies", [])) & stacks.keys() for name, one in stacks.items()}
    (mine,) = [name for name in stacks if name.endswith("-images")]
    assert [name for name, others in needs.items() if mine in others] == []
    before = set[str]()
    while more := {other for name in (mine, *before) for other in needs[name]} - before:
        before |= more
    assert before == stacks.keys() - {mine, "trainyard-dashboard"}


def test_the_tag_is_of_the_contents_and_not_of_compiled_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "code.py").write_text("a = 1\n")
    monkeypatch.setattr(own_images, "CHILD", {".": tmp_path})
    before = child_tag(BASE)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "code.cpython-311.pyc").write_bytes(b"compiled")
    assert child_tag(BASE) == before
    (tmp_path / "code.py").write_text("a = 2\n")
    changed = child_tag(BASE)
    assert changed != before
    (tmp_path / "code.py").rename(tmp_path / "other.py")
    assert child_tag(BASE) not in {before, changed}


def test_a_context_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_images, "CHILD", {".": Path(__file__).parent / "no-such-folder"})
    with pytest.raises(NotSetUp):
        child_tag(BASE)
