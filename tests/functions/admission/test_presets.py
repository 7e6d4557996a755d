"""A request gets the fields of its preset that it lacks; what it has is its own, and job.json says what the preset gave."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from contract.errors import InvalidRequest
from contract.request_rules import RequestRules
from job_requests.presets import list_given
from job_requests.reading import list_preset_problems, read
from job_requests.request import JobRequest
from tests.builders import LIMITS
from tests.functions.admission.account import RULES, Account, start
from tools.refusals.jobs import LEAST

PROGRAM = {name: LEAST[name] for name in ("code", "command")}
FULL: dict[str, Any] = {
    "instance_types": ["g5.xlarge"],
    "regions": "auto",
    "nodes": 2,
    "market": "spot",
    "launcher": "torchrun",
    "processes_per_node": 4,
    "command": ["train.py"],
    "environment": {"A": "1", "B": "2"},
    "tags": {"Project": "apollo"},
    "data": ["s3://datasets/a/"],
}
ONE = RequestRules(presets={"full": FULL})


def filled(**own: Any) -> dict[str, Any]:
    """The fields that a request of the preset `full` says something about, once it is read."""
    request, problems = read({"preset": "full", "code": LEAST["code"], **own}, LIMITS, ONE)
    assert problems == []
    return {name: value for name, value in request.model_dump(mode="json").items() if name in request.model_fields_set}


def problems_of(preset: dict[str, Any], rules: RequestRules = ONE) -> list[str]:
    return list_preset_problems(preset, LIMITS, rules)


def test_a_request_gets_what_it_lacks(there: Account) -> None:
    answer = start({"preset": "two-a10g", **PROGRAM})
    job = there.job("job-1")
    assert job is not None
    assert (job.nodes, {rung.market.value for rung in job.ladder}, job.environment) == (
        2,
        {"spot"},
        {"NCCL_DEBUG": "WARN"},
    )
    assert job.preset == "two-a10g"
    assert job.preset_gave == RULES.presets["two-a10g"]
    assert answer["preset"] == {"name": "two-a10g", "gave": RULES.presets["two-a10g"]}


def test_its_own_fields_win_and_are_not_said_to_be_the_presets(there: Account) -> None:
    answer = start({"preset": "two-a10g", **PROGRAM, "nodes": 1, "environment": {"SEED": "7"}})
    job = there.job("job-1")
    assert job is not None
    assert (job.nodes, job.environment) == (1, {"NCCL_DEBUG": "WARN", "SEED": "7"})
    assert "nodes" not in job.preset_gave
    assert job.preset_gave["environment"] == {"NCCL_DEBUG": "WARN"}
    assert answer["preset"]["gave"] == job.preset_gave


def test_a_job_without_a_preset_says_nothing_of_one(there: Account) -> None:
    assert start(LEAST)["preset"] is None
    job = there.job("job-1")
    assert job is not None
    assert (job.preset, job.preset_gave) == ("", {})


def test_a_dry_run_shows_what_a_preset_gives(there: Account) -> None:
    assert start({"preset": "short", **LEAST, "dry_run": True})["preset"]["gave"] == RULES.presets["short"]
    assert there.job("job-1") is None


@pytest.mark.parametrize(
    ("own", "wanted", "gone"),
    [
        ({"accelerators": "A10G:4"}, {"accelerators": "A10G:4"}, "instance_types"),
        ({"region": "eu-west-1"}, {"region": "eu-west-1"}, "regions"),
        ({"launcher": "none", "command": ["python", "a.py"]}, {"launcher": "none"}, "processes_per_node"),
    ],
)
def test_an_own_field_takes_the_place_of_what_stands_for_it_in_the_preset(
    own: dict[str, Any], wanted: dict[str, Any], gone: str
) -> None:
    found = filled(**own)
    assert wanted.items() <= found.items()
    assert gone not in found


def test_entries_of_environment_and_tags_are_added_and_lists_are_not() -> None:
    found = filled(environment={"B": "3"}, tags={"Stage": "dev"}, data=["s3://datasets/b/"])
    assert found["environment"] == {"A": "1", "B": "3"}
    assert found["tags"] == {"Project": "apollo", "Stage": "dev"}
    assert found["data"] == ["s3://datasets/b/"]


def test_null_takes_out_what_the_preset_would_give() -> None:
    capped = RequestRules(presets={"capped": {"max_cost_usd": 5}})
    assert read({**LEAST, "preset": "capped"}, LIMITS, capped)[0].max_cost_usd == 5
    assert read({**LEAST, "preset": "capped", "max_cost_usd": None}, LIMITS, capped)[0].max_cost_usd is None


WITH_NULL = {
    "image",
    "accelerators",
    "region",
    "reservation",
    "max_hours",
    "max_cost_usd",
    "resume_from",
    "stall",
    "volume_gb",
    "machine_image",
    "job_role",
    "workbench",
}
"""Fields that a request may leave to nothing, as docs/guides/jobs.md lists them."""


@pytest.mark.parametrize("name", sorted(JobRequest.model_fields.keys() - {"preset", "grid_line"}))
def test_null_is_refused_in_a_field_that_always_has_a_value(name: str) -> None:
    whole = RequestRules(presets={"whole": LEAST})
    _, problems = read({"preset": "whole", name: None}, LIMITS, whole)
    fields = {line.partition(":")[0] for line in problems}
    assert fields == (
        set() if name in WITH_NULL - {"accelerators"} else {name.replace("accelerators", "instance_types")}
    )


def test_the_guide_lists_the_fields_that_null_takes_out() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "guides" / "jobs.md").read_text()
    listed = re.search(r"`null`\*\* takes out (.*?);", guide)
    assert listed is not None
    assert set(re.findall(r"`(\w+)`", listed[1])) == WITH_NULL


def test_null_takes_out_what_stands_for_its_field_too() -> None:
    request, problems = read({"preset": "full", "code": LEAST["code"], "region": None}, LIMITS, ONE)
    assert (problems, request.regions, request.region) == ([], None, None)
    _, problems = read({"preset": "full", "code": LEAST["code"], "accelerators": None}, LIMITS, ONE)
    assert [line.partition(";")[0] for line in problems] == ["instance_types: is missing"]


def test_accelerators_that_are_null_are_missing() -> None:
    request = {name: value for name, value in LEAST.items() if name != "instance_types"}
    (line,) = read({**request, "accelerators": None}, LIMITS)[1]
    assert line.startswith("instance_types: is missing")


def test_the_mark_of_no_line_leaves_a_preset_alone() -> None:
    assert filled(grid_line=None)["nodes"] == 2
    assert list_given({"preset": "full", "grid_line": None}, ONE) == FULL


@pytest.mark.parametrize("preset", [None, "full"])
def test_null_in_the_place_of_a_name_is_no_preset(preset: str | None) -> None:
    request, problems = read({**LEAST, "preset": preset}, LIMITS, ONE)
    assert problems == []
    assert request.nodes == (2 if preset else 1)


def test_a_wrong_field_that_a_preset_gives_is_refused_as_any_other() -> None:
    """A preset of an earlier deploy, say, whose limits were wider."""
    wide = RequestRules(presets={"wide": {"nodes": 17, "instance_types": ["g5.xlarge"]}})
    assert read({"preset": "wide", **PROGRAM}, LIMITS, wide)[1] == [
        "nodes: 17 is too large; allowed: a whole number from 1 to 16 (limits.max_nodes in cdk.json)"
    ]


def test_a_deployment_without_presets_says_that_there_are_none() -> None:
    assert read({**LEAST, "preset": "full"}, LIMITS)[1] == [
        "preset: there is no full; allowed: none (presets in cdk.json)"
    ]


def test_the_request_itself_stays_as_it_was_given() -> None:
    given = {"preset": "full", "code": LEAST["code"], "environment": {"C": "3"}}
    before = repr(given)
    read(given, LIMITS, ONE)
    assert (repr(given), FULL["environment"]) == (before, {"A": "1", "B": "2"})


def test_a_line_of_a_grid_is_as_plan_filled_it() -> None:
    """A preset that changed since, or that there is no more, changes nothing and refuses nothing."""
    mark = {"execution": "arn:aws:states:eu-central-1:123456789012:execution:yard-grid:sweep", "index": 0}
    for name in ("two-a10g", "of-last-week"):
        request, problems = read({**LEAST, "preset": name, "grid_line": mark}, LIMITS, RULES)
        assert problems == []
        assert (request.nodes, request.preset) == (1, name)


@pytest.mark.parametrize(
    ("preset", "says"),
    [
        ({"preset": "other"}, "preset: presets do not nest; allowed: left out"),
        ({"grid_line": {}}, "grid_line: a grid alone writes it; allowed: left out"),
        ({"dry_run": True}, "dry_run: no job that names the preset would start; allowed: left out"),
        ({"node": 2}, "node: there is no such field (did you mean nodes?)"),
        ({"nodes": "2"}, 'nodes: "2" is not a whole number'),
        ({"nodes": 17}, "nodes: 17 is too large; allowed: a whole number from 1 to 16"),
        ({"max_hours": 101}, "max_hours: 101 is too large"),
        (
            {"instance_types": ["g5.xlarge"], "accelerators": "A10G:1"},
            "accelerators: the request has instance_types too",
        ),
        ({"region": "eu-central-1", "regions": "auto"}, "regions: the request has region too"),
        ({"command": "a && b"}, "command: has shell syntax"),
        ({"launcher": "mpi", "command": ["torchrun", "a.py"]}, "launcher: mpi starts the command on its own"),
        ({"tags": {"trainyard:job": "x"}}, "tags.trainyard:job: is not a key for people"),
        ({"secrets": {"A": "hunter2"}}, "secrets.A: hunter2 is not the ARN of a secret"),
    ],
)
def test_what_is_wrong_with_a_preset_is_found_without_a_request(preset: dict[str, Any], says: str) -> None:
    assert any(one.startswith(says) for one in problems_of(preset)), problems_of(preset)


@pytest.mark.parametrize(
    "preset",
    [
        {"nodes": 2},
        {"market": "spot", "max_wait_hours": 12},
        {"launcher": "torchrun", "processes_per_node": 8},
        {"processes_per_node": 8},
        {"image": "images:v1"},
        {"arguments": ["--epochs", "3"]},
        FULL,
    ],
)
def test_a_part_of_a_request_lacks_nothing(preset: dict[str, Any]) -> None:
    assert problems_of(preset) == []


def test_a_refused_preset_starts_nothing(there: Account) -> None:
    with pytest.raises(InvalidRequest):
        start({**LEAST, "preset": "two-h100"})
    assert there.changes == []
