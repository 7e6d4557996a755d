"""Hundreds of children beside each other, whatever befalls them: one record a line, one training at a time, nothing left over."""

from __future__ import annotations

from collections import Counter

import pytest

from contract.grid import Backend, LineOutcome
from localaws.model import Tokens
from tests.properties.grid_load import LEAST_RATE
from tests.properties.grid_world import GridWorld, Weather, driven
from tests.properties.rounds import numbers

LINES = 200


@pytest.fixture(
    scope="module", params=[(0.0, 0.0), (0.5, 0.0), (0.3, 0.5)], ids=["sagemaker", "two backends", "three backends"]
)
def world(request: pytest.FixtureRequest) -> GridWorld:
    """Throttles, lost answers, children killed, retired and started twice, trainings that fail and are interrupted."""
    jobs, pods = request.param
    found, _ = driven(LINES, seed=7, jobs=jobs, pods=pods)
    return found


def test_every_line_has_exactly_one_record_that_says_what_sagemaker_says(world: GridWorld) -> None:
    assert world.missing() == []
    assert world.wrong_records() == []


def test_no_line_ever_has_two_trainings_alive(world: GridWorld) -> None:
    assert world.alive_at_once() == 1


def test_nothing_runs_when_the_last_child_has_ended(world: GridWorld) -> None:
    assert world.still_alive() == []


def test_a_line_that_its_backend_refuses_has_no_training_and_says_why(world: GridWorld) -> None:
    refused = [one for one in world.records().values() if one.outcome is LineOutcome.REFUSED]
    assert {one.training for one in refused} == world.refused != set()
    words = {
        Backend.SAGEMAKER: "Invalid image",
        Backend.EC2: "nodes: 99 is too large",
        Backend.KUBERNETES: "spec: Invalid",
    }
    assert all(words[one.backend] in one.reason for one in refused)


def test_every_job_was_started_once_and_as_many_as_there_are_lines(world: GridWorld) -> None:
    lines = [one.training for one in world.yard.lines if one.backend is Backend.EC2]
    assert sorted(world.line_jobs.started) == sorted(lines)


def test_every_mpi_job_was_made_once_and_as_many_as_there_are_lines(world: GridWorld) -> None:
    lines = [one.training for one in world.yard.lines if one.backend is Backend.KUBERNETES]
    assert sorted(world.pod_jobs.made) == sorted({*lines} - world.refused)


def test_the_pace_is_held_in_spite_of_it_all(world: GridWorld) -> None:
    assert world.rate_held() >= LEAST_RATE


def test_no_region_is_asked_faster_than_its_pace_by_more_than_its_retries(world: GridWorld) -> None:
    """A minute of any region's accepted submissions is no more than the pace allows, and those that were late."""
    for region in world.grid.regions:
        times = sorted(one.created_at for one in world.aws.sagemaker(region).trainings.values())
        most = max(sum(begin <= one < begin + 60 for one in times) for begin in times)
        assert most <= 1.25 * 60 * world.pace


def test_no_child_ends_in_a_way_that_batch_does_not_know(world: GridWorld) -> None:
    assert world.problems == []
    assert set(world.exits) <= {"DONE", "AGAIN", "killed"}


def test_everything_that_was_to_go_wrong_went_wrong(world: GridWorld) -> None:
    for what in ("killed", "retired", "second children", "lost responses", "throttles by chance"):
        assert world.counts[what] > 0, what


@pytest.mark.parametrize(("jobs", "pods"), [(0.0, 0.0), (0.5, 0.0), (1.0, 0.0), (0.0, 1.0), (0.3, 0.5)])
@pytest.mark.parametrize("seed", numbers(3, quick=1))
def test_children_that_die_all_the_time_still_leave_one_record_each(seed: int, jobs: float, pods: float) -> None:
    rough = Weather(throttled=0.2, lost=0.1, killed=0.3, retired=0.3, doubled=0.3, refused=0.05)
    world, _ = driven(40, seed=seed, weather=rough, jobs=jobs, pods=pods)
    assert world.missing() == world.wrong_records() == []
    assert world.problems == []
    assert world.alive_at_once() == 1
    assert world.still_alive() == []


def test_more_lines_than_children_at_once_wait_for_their_turn() -> None:
    world, _ = driven(60, seed=2, concurrent=10)
    assert world.missing() == world.wrong_records() == []
    assert world.problems == []


def test_the_same_seed_drives_the_same_grid() -> None:
    def counts() -> Counter[str]:
        return driven(20, seed=5)[0].counts

    assert counts() == counts()


def test_without_bad_weather_every_line_costs_one_submission() -> None:
    fair = Weather(throttled=0, lost=0, killed=0, retired=0, doubled=0, refused=0)
    world, _ = driven(40, seed=1, weather=fair)
    asked = Counter(call.params["TrainingJobName"] for call in world.aws.calls if call.operation == "CreateTrainingJob")
    assert set(asked.values()) == {1}
    assert len(asked) == 40


def test_a_throttling_storm_delays_and_loses_nothing() -> None:
    """SageMaker takes a quarter of the pace: every line gets through, in less than twice the time that it takes at best."""
    world = GridWorld(lines=60, seed=3, pace=2.0)
    for region in world.grid.regions:
        world.aws.sagemaker(region).limits["CreateTrainingJob"] = Tokens(rate=0.5, burst=5)
    world.run()
    assert world.missing() == world.wrong_records() == []
    submissions = sum(call.operation == "CreateTrainingJob" for call in world.aws.calls)
    assert submissions < 10 * world.lines
    killed = world.counts["killed"] + world.counts["retired"]
    times = sorted(one.created_at for one in world.trainings())
    assert times[-1 - killed] - world.grid.planned_at < 2 * world.lines / len(world.grid.regions) / 0.5 + 60


def test_children_that_all_come_late_get_through_though_their_slots_are_past() -> None:
    world = GridWorld(lines=60, seed=4, pace=2.0)
    world.clock.now += 3600
    world.run()
    assert world.missing() == world.wrong_records() == []
    assert world.alive_at_once() == 1
