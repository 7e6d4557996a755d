"""Which line a child is for, and what it says when nobody can tell."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from contract.codec import encode
from contract.grid import ExitCode
from tests.fakes.grid_yard import BUCKET, PREFIX, GridYard, line_of, planned

FINAL, DONE = ExitCode.FINAL, ExitCode.DONE


def refused(yard: GridYard, capsys: pytest.CaptureFixture[str], **named: object) -> str:
    """The child's words; it has ended for good and made nothing."""
    assert yard.run(**named) == FINAL  # type: ignore[arg-type]
    assert yard.calls("CreateTrainingJob") == yard.calls("PutObject") == 0
    return capsys.readouterr().err


def test_a_plain_job_is_for_the_line_that_its_array_begins_with(yard: GridYard) -> None:
    assert yard.run() == DONE
    assert yard.record(0) is not None


def test_a_child_of_an_array_is_for_the_line_at_its_place_behind_the_first() -> None:
    with planned(5) as yard:
        assert yard.run(2, first=1) == DONE
        assert [yard.record(index) is not None for index in range(5)] == [False, False, False, True, False]


def test_in_a_later_round_the_index_counts_in_that_rounds_list() -> None:
    with planned(5) as yard:
        yard.put(PREFIX.work(2), b"[1, 4]")
        assert yard.run(1, round_=2) == DONE
        assert yard.record(4) is not None
        assert yard.record(1) is None


def test_a_line_of_a_later_shard_is_found_there() -> None:
    with planned(103) as yard:
        assert yard.run(102) == DONE
        assert yard.record(102) is not None


@pytest.mark.parametrize("name", ["BUCKET", "GRID", "DEPLOYMENT", "HOME_REGION", "FIRST", "ROUND", "TIMING"])
def test_a_missing_variable_is_named(yard: GridYard, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert f"TRAINYARD_{name} is missing" in refused(yard, capsys, changes={f"TRAINYARD_{name}": None})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"TRAINYARD_FIRST": "one"}, "does not fit"),
        ({"TRAINYARD_FIRST": '"1"'}, "TRAINYARD_FIRST is str, wanted int"),
        ({"TRAINYARD_FIRST": "-1"}, "counted from 0"),
        ({"TRAINYARD_ROUND": "0"}, "counted from 1"),
        ({"TRAINYARD_TIMING": "{}x"}, "does not fit"),
        ({"AWS_BATCH_JOB_ARRAY_INDEX": "x"}, "AWS_BATCH_JOB_ARRAY_INDEX is 'x'"),
        ({"AWS_BATCH_JOB_ARRAY_INDEX": "-1"}, "AWS_BATCH_JOB_ARRAY_INDEX is '-1'"),
        ({"AWS_BATCH_JOB_ATTEMPT": "²"}, "AWS_BATCH_JOB_ATTEMPT is '²'"),
        ({"AWS_BATCH_JOB_ARRAY_INDEX": "1"}, "The grid has 1 lines, this child is for line 1"),
        ({"TRAINYARD_GRID": "other"}, "There is no grids/other/grid.json"),
        ({"TRAINYARD_DEPLOYMENT": "other"}, "is of the grid sweep of yard"),
    ],
    ids=str,
)
def test_a_bad_environment_is_final_and_says_what_is_wrong(
    yard: GridYard, capsys: pytest.CaptureFixture[str], changes: dict[str, str], words: str
) -> None:
    assert words in refused(yard, capsys, changes=changes)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (None, "There is no grids/sweep/rounds/2.json"),
        (b"[1", "is not JSON"),
        (b"{}", "not a list of numbers"),
        (b'["1"]', "not a list of numbers"),
        (b"[]", "has 0 lines, this child is for place 0"),
        (b"[7]", "The grid has 1 lines, this child is for line 7"),
        (b"[-1]", "this child is for line -1"),
    ],
)
def test_a_bad_list_of_work_is_final(
    yard: GridYard, capsys: pytest.CaptureFixture[str], body: bytes | None, words: str
) -> None:
    if body is not None:
        yard.put(PREFIX.work(2), body)
    assert words in refused(yard, capsys, round_=2)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (None, "There is no grids/sweep/lines/000000.jsonl"),
        (b"", "has 0 lines: the plan lacks line 0"),
        (b"{}", "Line.index is missing"),
        (b"nonsense", "is not JSON"),
        (encode(line_of(4)), "has line 4 in the place of line 0"),
        (encode(replace(line_of(0), request={})), "without TrainingJobName"),
        (encode(replace(line_of(0), request={"TrainingJobName": "a"})), "does not set trainyard:deployment"),
    ],
    ids=["absent", "empty", "fields", "json", "another", "nameless", "tagless"],
)
def test_a_plan_that_lacks_the_line_is_final(
    yard: GridYard, capsys: pytest.CaptureFixture[str], body: bytes | None, words: str
) -> None:
    if body is None:
        del yard.aws.s3.buckets[BUCKET].objects[PREFIX.lines(0)]
    else:
        yard.put(PREFIX.lines(0), body)
    assert words in refused(yard, capsys)


@pytest.mark.parametrize("key", ["line", "grid", "execution", "deployment"])
def test_a_request_by_whose_tags_its_training_could_not_be_known_is_not_sent(
    yard: GridYard, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    line = line_of(0)
    marks = [one for one in line.request["Tags"] if not one["Key"].endswith(f":{key}")]
    yard.put(PREFIX.lines(0), encode(replace(line, request=line.request | {"Tags": marks})))
    assert f"does not set trainyard:{key}" in refused(yard, capsys)


def test_a_garbled_description_of_the_grid_is_final(yard: GridYard, capsys: pytest.CaptureFixture[str]) -> None:
    yard.put(PREFIX.description, json.dumps({"id": "sweep"}).encode())
    assert "is missing" in refused(yard, capsys)


def test_a_home_bucket_that_may_not_be_read_is_final(yard: GridYard, capsys: pytest.CaptureFixture[str]) -> None:
    yard.aws.s3.buckets[BUCKET].forbidden = ("grids/",)
    assert "s3:GetObject" in refused(yard, capsys)
