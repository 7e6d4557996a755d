"""The grid's words: how lines become arrays, and trainings get their names."""

from __future__ import annotations

import re

import pytest

from contract.grid import ARRAY, GridPrefix, arrays, training_name, training_prefix

NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
"""What SageMaker takes for the name of a training job."""
EXECUTION = "arn:aws:states:eu-central-1:111122223333:execution:trainyard-grid:sweep_7"
STARTED = "2026-11-21T10:00:00.000Z"


@pytest.mark.parametrize("lines", [1, 2, 9_999, 10_000, 10_001, 20_000, 20_001, 99_999, 100_000])
def test_arrays_hold_every_line_once_and_none_is_longer_than_batch_takes(lines: int) -> None:
    found = arrays(lines)
    assert [first + place for first, size in found for place in range(size)] == list(range(lines))
    assert all(size in ARRAY for _, size in found) or lines == 1


@pytest.mark.parametrize("lines", [1, 2, 10_000])
def test_as_many_lines_as_an_array_takes_are_one_job(lines: int) -> None:
    assert arrays(lines) == [(0, lines)]


def test_no_line_is_no_job() -> None:
    assert arrays(0) == []


def test_ten_thousand_and_one_lines_leave_no_line_alone() -> None:
    assert arrays(10_001) == [(0, 5_001), (5_001, 5_000)]


@pytest.mark.parametrize("grid", ["a", "_", "---", "x" * 80, "sweep_7", "9-lives_", "_9"])
@pytest.mark.parametrize("deployment", ["ab", "a" * 20])
def test_the_name_of_a_training_is_one_that_sagemaker_takes(grid: str, deployment: str) -> None:
    name = training_name(deployment, EXECUTION.replace("sweep_7", grid), STARTED, 99_999_999)
    assert NAME.fullmatch(name), name


@pytest.mark.parametrize(
    "other", ["trainyard-b", "trainyard-b-c", "trainyardb", "train", "trainyard-0", "trainyard-xb", "trainyardxb"]
)
@pytest.mark.parametrize("grid", ["sweep", "b", "b-c", "b-c-d", "Xb", "0", "xb"])
def test_no_training_of_a_deployment_has_a_name_that_begins_as_anothers(other: str, grid: str) -> None:
    execution = EXECUTION.replace("sweep_7", grid)
    for one, two in (("trainyard", other), (other, "trainyard")):
        name = training_name(one, execution, STARTED, 3)
        assert name.startswith(training_prefix(one))
        assert not name.startswith(training_prefix(two))
        assert NAME.fullmatch(name)


def test_the_names_of_a_deployment_without_a_hyphen_stay_what_they_were() -> None:
    assert training_prefix("trainyard") == "trainyard-"


def test_a_grid_of_the_same_name_three_months_later_has_other_names() -> None:
    later = STARTED.replace("2026-11", "2027-02")
    assert training_name("yard", EXECUTION, STARTED, 0) != training_name("yard", EXECUTION, later, 0)


def test_the_same_line_always_has_the_same_name() -> None:
    assert training_name("yard", EXECUTION, STARTED, 3) == training_name("yard", EXECUTION, STARTED, 3)


def test_no_two_names_of_underscores_meet() -> None:
    one, other = EXECUTION.replace("sweep_7", "a_b"), EXECUTION.replace("sweep_7", "a-b")
    assert training_name("yard", one, STARTED, 0) != training_name("yard", other, STARTED, 0)


def test_a_hundred_lines_share_an_object_and_the_next_one_begins_another() -> None:
    prefix = GridPrefix("sweep")
    assert prefix.lines(0) == prefix.lines(99) != prefix.lines(100)
