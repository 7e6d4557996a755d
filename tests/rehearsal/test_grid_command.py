"""A rehearsed grid: what the command line takes, what counts as a shortcoming, and what IAM is asked for a grid's calls."""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from contract import tags
from contract.grid import Backend
from localaws.conditions import Conditions
from localaws.iam.questions import Untaught
from localaws.services import kubernetes
from localaws.testing.asking import OWNER, questions_of
from rehearsal.fault_keys import GRID
from rehearsal.faults import FAULTS
from rehearsal.grid import GridSummary, shortcomings
from rehearsal.grid_command import arguments, describe_cluster, regions
from rehearsal.grid_screen import REASONS, REPLACED, show
from rehearsal.replaced import FILE
from tests.rehearsal.grids import GRID_FAULTS, WELL
from tools.faults import HEAD

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "grid"
MANIFEST = ["--manifest", str(EXAMPLE / "manifest.csv")]


@pytest.mark.usefixtures("checked_here")
def test_home_has_its_network_and_the_regions_of_the_data_are_for_the_grid_alone() -> None:
    found = regions(arguments([*MANIFEST, "--grid-data", str(EXAMPLE / "digits"), "--region", "ap-south-1"]))
    assert [place["region"] for place in found] == [
        *("eu-central-1", "ap-northeast-1", "ap-south-1"),
        *("us-east-1", "us-west-2"),
    ]
    assert ["cidr" in place for place in found] == [True, False, False, False, False]


@pytest.mark.parametrize("name", ["AWS_PROFILE", "AWS_DEFAULT_PROFILE"])
def test_a_profile_of_the_person_that_does_not_exist_keeps_no_rehearsal_from_beginning(name: str) -> None:
    words = [sys.executable, "-m", "rehearsal", *MANIFEST, "--region", "mars-1"]
    done = subprocess.run(
        words, env={**os.environ, name: "there-is-none"}, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "--region mars-1: SageMaker has no such region" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("checked_here")
@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--grid-data", "nowhere"], "--grid-data nowhere: there is no such folder"),
        (["--image", "nowhere"], "--image nowhere: there is no such folder"),
        (["--grid-data", str(EXAMPLE / "digits/us-east-1")], "has no folder that is called like a region"),
        (["--grid-data", str(EXAMPLE)], "digits is not a region of SageMaker"),
        (["--image", str(EXAMPLE / "digits")], "build.json: there is no such file"),
        (["--input", "nowhere.json"], "--input nowhere.json: there is no such file"),
        (["--input", str(EXAMPLE)], "grid: is a folder; it must be a file"),
        (["--input", str(EXAMPLE / "manifest.csv")], "manifest.csv: is not JSON: Expecting value"),
        (["--input", str(EXAMPLE / "sweep.jsonl")], "sweep.jsonl: is not JSON: Extra data"),
        (["--region", "mars-west-1"], "--region mars-west-1: SageMaker has no such region; there are af-south-1, "),
        (["--limit", "nan"], "--limit nan: must be a number of seconds above 0"),
        (["--limit", "-1"], "--limit -1: must be a number of seconds above 0"),
        (["--speed", "0"], "--speed 0: must be a number above 0"),
        (["--fault", "spot-interupted"], "did you mean spot-interrupted?"),
        (["--fault", "quota-reached:seconds=soon"], "seconds is 'soon'"),
        (["--fault", "task-retired:line=first"], "line is 'first'"),
        (["--nodes", "2"], "--job and its options do not go with --manifest"),
        (["--job", "job.json"], "a rehearsal runs one job or one grid"),
        (["--imag", "x"], "unrecognized arguments"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_starts(
    more: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        arguments([*MANIFEST, *more])
    assert says in capsys.readouterr().err


def test_a_manifest_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments(["--manifest", "nowhere.csv"])
    assert "--manifest nowhere.csv: there is no such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "is not a JSON object"),
        ('{"manifest": "s3://a/b"}', "has `manifest`; --manifest is uploaded in its place"),
    ],
)
def test_an_input_that_is_none_is_refused(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "input.json").write_text(text)
    with pytest.raises(SystemExit):
        arguments([*MANIFEST, "--input", str(tmp_path / "input.json")])
    assert says in capsys.readouterr().err


def test_a_wrong_input_is_refused_before_the_deployment_in_the_words_of_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "input.json").write_text('{"defaults": {"max_hours": "1"}, "wibble": 3}')
    with pytest.raises(SystemExit):
        arguments([*MANIFEST, "--input", str(tmp_path / "input.json")])
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("; allowed: ")[0] for line in lines] == [
        "input.json: wibble: there is no such field",
        'input.json: defaults.max_hours: "1" is not a number (numbers have no quotes)',
    ]


def test_a_manifest_in_another_encoding_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.csv").write_bytes("eu-central-1,s3://a/b\n".encode("utf-16"))
    with pytest.raises(SystemExit):
        arguments(["--manifest", str(tmp_path / "m.csv")])
    assert "is not a string in UTF-8" in capsys.readouterr().err


def test_all_that_is_wrong_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments(["--manifest", "nowhere.csv", "--image", "nowhere", "--speed", "0"])
    told = capsys.readouterr().err
    assert all(option in told for option in ("--manifest nowhere.csv", "--image nowhere", "--speed 0"))


def test_words_in_brackets_are_shown_as_they_are(tmp_path: Path) -> None:
    reason = "AlgorithmError: [rank 0] wanted [1, 2]"
    failed = {
        "backend": "sagemaker",
        "index": 0,
        "line": 1,
        "region": "eu-central-1",
        "outcome": "Failed",
        "billable_seconds": None,
        "cost_usd": None,
    }
    summary = replace(WELL, results=[{**failed, "metrics": {}, "reason": reason, "artifact": ""}])
    told = shown(summary, tmp_path, "[line 1] failed")
    assert reason in told
    assert "[line 1] failed" in told


def shown(summary: GridSummary, out: Path, *wrong: str, verbose: bool = False) -> str:
    """What a person sees on a terminal of 80 columns that wraps nothing itself."""
    console = Console(record=True, width=80, file=io.StringIO(), soft_wrap=True, emoji=False)
    show(console, summary, Conditions(), [*wrong], out=out, verbose=verbose)
    return console.export_text()


def test_a_reason_is_whole_at_80_columns_and_equal_ones_are_told_once(tmp_path: Path) -> None:
    why = "the log stream t-1/algo-1 of /aws/sagemaker/TrainingJobs in eu-central-1 says :secret: " + "x" * 200
    line = {
        "backend": "sagemaker",
        "region": "eu-central-1",
        "outcome": "Failed",
        "billable_seconds": 1.0,
        "cost_usd": 0.1,
    }
    results = [
        {**line, "index": index, "line": index + 1, "metrics": {"accuracy": 0.5}, "reason": why, "artifact": ""}
        for index in range(12)
    ]
    told = shown(replace(WELL, results=results), tmp_path)
    assert told.count(why) == 1
    assert f"#0, #1, #2, #3, #4, #5, #6, #7, #8, #9 ...: {why}" in told
    assert max(len(one) for one in told.splitlines() if one.startswith(("│", "┃", "┏", "└"))) <= 80


def test_many_reasons_are_counted_and_no_reason_steers_the_terminal(tmp_path: Path) -> None:
    line = {"backend": "sagemaker", "region": "r", "outcome": "Failed", "billable_seconds": None, "cost_usd": None}
    results = [
        {**line, "index": index, "line": index + 1, "metrics": {}, "reason": f"\x1b[2J{index}\u202e", "artifact": ""}
        for index in range(REASONS + 5)
    ]
    told = shown(replace(WELL, results=results), tmp_path)
    assert "and 5 reasons more: results.csv" in told
    assert "\x1b" not in told
    assert "\u202e" not in told


def test_what_is_replaced_is_a_file_and_a_line_that_names_it_and_all_of_it_with_verbose(tmp_path: Path) -> None:
    told, whole = shown(WELL, tmp_path), (tmp_path / FILE).read_text()
    assert str(tmp_path / FILE) in told
    for part in REPLACED:
        assert part in whole
        assert part not in told
        assert part in shown(WELL, tmp_path, verbose=True)


@pytest.mark.parametrize(
    ("given", "backend", "cluster"),
    [
        ({"cluster": "lab", "max_nodes": 4}, "kubernetes", {"cluster": "lab", "max_nodes": 4}),
        ({"cluster": "new", "operator_manifest": "a.yaml"}, "kubernetes", {"cluster": "rehearsed"}),
        ({"cluster": "lab"}, "ec2", {}),
        ({"cluster": ""}, "kubernetes", {}),
        ({}, "kubernetes", {}),
    ],
)
def test_a_rehearsal_has_a_cluster_where_the_settings_name_one_and_a_line_needs_it(
    given: dict[str, Any], backend: str, cluster: dict[str, Any]
) -> None:
    options = argparse.Namespace(text=f'{{"backend": "{backend}"}}\n', request={})
    assert describe_cluster(options, given) == cluster


@pytest.mark.parametrize("backend", [*Backend])
def test_a_grid_with_a_line_on_kubernetes_says_what_stands_for_its_cluster(tmp_path: Path, backend: Backend) -> None:
    line = {"backend": backend, "region": "r", "outcome": "Completed", "billable_seconds": 1.0, "cost_usd": 0.1}
    results = [{**line, "index": 0, "line": 1, "metrics": {}, "reason": "", "artifact": ""}]
    printed = shown(replace(WELL, results=results), tmp_path, verbose=True)
    assert [part in printed for part in kubernetes.NOT_SHOWN] == [backend is Backend.KUBERNETES] * 2


def test_every_fault_of_a_grid_is_named_to_people_and_met_alone_by_a_test() -> None:
    ours = {name for name, kind in FAULTS.items() if kind.keys.get("job") is GRID} | {"sagemaker-throttled"}
    assert {fault.partition(":")[0] for fault in GRID_FAULTS.values()} == ours
    assert [name for name in ours if f"`{name}`" not in HEAD] == []


def test_a_grid_whose_lines_all_completed_and_that_left_nothing_has_no_shortcoming() -> None:
    assert shortcomings(WELL) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"status": "FAILED", "error": "InvalidRequest"}, "ended as FAILED (InvalidRequest)"),
        ({"outcomes": {"Completed": 1, "Failed": 1}}, "of 2 lines the results say"),
        ({"outcomes": {"Completed": 1}}, "of 2 lines the results say"),
        ({"outcomes": {}}, "nothing"),
        ({"trainings": 3}, "2 lines, and there were 3 trainings and 0 jobs"),
        ({"trainings_left": ["t"]}, "trainings are left: t"),
        ({"children_left": ["c"]}, "children are left: c"),
        ({"processes_left": 1}, "1 processes are left"),
        ({"astray": ["s3://elsewhere/m"]}, "missing from their line's region: s3://elsewhere/m"),
    ],
)
def test_anything_else_is_one(change: dict[str, Any], says: str) -> None:
    (line,) = shortcomings(replace(WELL, **change))
    assert says in line


# what IAM is asked


def list_questions(name: str, **parameters: Any) -> list[tuple[str, str, dict[str, Any]]]:
    found = [(one.action, one.resource, dict(one.context)) for one in questions_of(name, "us-east-1", **parameters)]
    for _, _, context in found:
        assert context.pop("aws:RequestedRegion") == "us-east-1"
    return found


TRAINING = f"arn:aws:sagemaker:us-east-1:{OWNER}:training-job/t"
BATCH = f"arn:aws:batch:us-east-1:{OWNER}:"
REQUESTED = {f"aws:RequestTag/{tags.GRID}": "g", "aws:TagKeys": [tags.GRID]}
OURS = {"aws:ResourceTag/owner": "us"}


def test_a_training_is_created_with_its_tags_and_its_role() -> None:
    given = {"TrainingJobName": "t", "RoleArn": "arn:role", "Tags": [{"Key": tags.GRID, "Value": "g"}]}
    assert list_questions("sagemaker:CreateTrainingJob", **given) == [
        ("sagemaker:CreateTrainingJob", TRAINING, REQUESTED),
        ("sagemaker:AddTags", TRAINING, REQUESTED | {"sagemaker:TaggingAction": "CreateTrainingJob"}),
        ("iam:PassRole", "arn:role", {"iam:PassedToService": "sagemaker.amazonaws.com"}),
    ]


@pytest.mark.parametrize("action", ["DescribeTrainingJob", "StopTrainingJob"])
def test_a_training_that_stands_is_asked_for_by_its_own_tags(action: str) -> None:
    assert list_questions(f"sagemaker:{action}", TrainingJobName="t") == [(f"sagemaker:{action}", TRAINING, OURS)]


def test_an_array_takes_the_right_to_its_queue_its_definition_and_its_tags() -> None:
    given = {"jobQueue": f"{BATCH}job-queue/q", "jobDefinition": "d", "tags": {tags.GRID: "g"}}
    assert list_questions("batch:SubmitJob", **given) == [
        ("batch:SubmitJob", f"{BATCH}job-definition/d", REQUESTED),
        ("batch:SubmitJob", f"{BATCH}job-queue/q", REQUESTED),
        ("batch:TagResource", f"{BATCH}job/*", REQUESTED),
    ]


def test_a_child_is_terminated_by_the_right_to_its_array() -> None:
    assert list_questions("batch:TerminateJob", jobId="j:7") == [("batch:TerminateJob", f"{BATCH}job/j", OURS)]


@pytest.mark.parametrize("name", ["batch:ListJobs", "batch:DescribeJobs", "sagemaker:ListTrainingJobs"])
def test_a_list_knows_no_resource(name: str) -> None:
    assert list_questions(name) == [(name, "*", {})]


@pytest.mark.parametrize("name", ["batch:CancelJob", "sagemaker:CreateEndpoint"])
def test_a_call_that_no_part_of_a_grid_makes_is_an_error(name: str) -> None:
    with pytest.raises(Untaught, match=name):
        list_questions(name, TrainingJobName="t", jobId="j")
