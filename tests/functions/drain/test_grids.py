"""The drain and grids: no execution, no job and no training is left when the regions go."""

from __future__ import annotations

from collections.abc import Mapping

from contract import names, tags
from contract.grid import GridPrefix
from localaws.services.sagemaker_jobs import Training
from localaws.services.sagemaker_planned import Life
from tests.builders import JOB, PLACE
from tests.fakes.executions import GRID_MACHINE, Execution
from tests.fakes.faults import Kind, Mishap
from tests.fakes.grid_yard import request_of
from tests.functions.drain.draining import Yard

QUEUE = names.grid_queue(JOB.deployment)
LONG = Life(training_s=1e6)


def grid(yard: Yard, name: str = "sweep") -> Execution:
    execution = yard.aws.states.executions.begin(name, GRID_MACHINE)
    yard.aws.clock.run(60)
    return execution


def train(
    yard: Yard,
    index: int = 0,
    *,
    deployment: str = JOB.deployment,
    life: Life = LONG,
    marks: Mapping[str, str] | None = None,
) -> Training:
    there = yard.aws.sagemaker(PLACE.region)
    there.life = lambda _: life
    wanted = {tags.DEPLOYMENT: deployment, **(marks or {})}
    name = f"yard-sweep-0123456789ab-{index}"
    marked = [{"Key": key, "Value": value} for key, value in wanted.items()]
    return there.add(request_of(index, PLACE.region, TrainingJobName=name, Tags=marked))


def beside(yard: Yard) -> None:
    """A whole look, in the middle of another one."""
    yard.run_drain()


def running(yard: Yard) -> list[str]:
    return [one.name for one in yard.aws.sagemaker(PLACE.region).alive()]


def test_a_destroy_ends_the_grid_its_jobs_and_its_trainings(yard: Yard) -> None:
    execution = grid(yard)
    train(yard, 0)
    train(yard, 1)
    yard.aws.batch.add("array", queue=QUEUE, children=2, tags={tags.DEPLOYMENT: JOB.deployment})
    assert yard.destroy()["Status"] == "SUCCESS"
    assert execution.status == "ABORTED"
    assert running(yard) == []
    assert yard.aws.batch.jobs["array"]["status"] == "FAILED"
    assert yard.aws.s3.read(JOB.home_bucket, GridPrefix("sweep").stopped) is not None


def test_children_are_fenced_before_their_trainings_are_stopped(yard: Yard) -> None:
    grid(yard)
    train(yard)
    seen: list[bool] = []

    def note_fence() -> None:
        seen.append(yard.aws.s3.read(JOB.home_bucket, GridPrefix("sweep").stopped) is not None)

    yard.run_drain(None, Mishap("sagemaker:StopTrainingJob", meanwhile=note_fence))
    assert seen == [True]


def test_a_destroy_is_not_done_while_a_training_stops(yard: Yard) -> None:
    train(yard)
    outcome = yard.run_drain()
    assert outcome.error == "StillRunning"
    assert "training yard-sweep-0123456789ab-0" in outcome.cause
    assert yard.run_drain().error == "StillRunning"


def test_trainings_of_another_deployment_run_on(yard: Yard) -> None:
    theirs = train(yard, deployment="yard-two")
    yard.aws.batch.add("theirs", queue=QUEUE, tags={tags.DEPLOYMENT: "yard-two"})
    assert yard.destroy()["Status"] == "SUCCESS"
    assert theirs.stopped_at is None
    assert not yard.aws.batch.jobs["theirs"].get("isTerminated")


def test_a_protected_training_refuses_the_destroy(yard: Yard) -> None:
    kept = train(yard, marks={tags.PROTECTED: "ann looks at it"})
    answer = yard.destroy()
    assert answer["Status"] == "FAILED"
    assert kept.name in answer["Reason"]
    assert kept.stopped_at is None


def test_a_training_that_does_not_end_in_time_is_named(yard: Yard) -> None:
    yard.again_s = 300.0
    train(yard, life=Life(uploading_s=1e6))
    yard.aws.clock.run(400)
    answer = yard.destroy()
    assert answer["Status"] == "FAILED"
    assert "yard-sweep-0123456789ab-0" in answer["Reason"]


def test_a_region_whose_sagemaker_does_not_answer_is_not_taken_to_be_empty(yard: Yard) -> None:
    train(yard)
    yard.aws.faults.add(Kind.DENIED, "sagemaker:ListTrainingJobs", times=1)
    outcome = yard.run_drain()
    assert outcome.error == "StillRunning"
    assert f"trainings in {PLACE.region} could not be listed or stopped" in outcome.cause
    assert yard.destroy()["Status"] == "SUCCESS"
    assert running(yard) == []


def test_a_deployment_without_grids_drains_as_ever(yard: Yard) -> None:
    yard.aws.batch.queues.clear()
    yard.aws.states.executions.machines.discard(GRID_MACHINE)
    assert yard.destroy()["Status"] == "SUCCESS"


def test_a_look_that_comes_twice_does_no_harm(yard: Yard) -> None:
    grid(yard)
    train(yard)
    yard.run_drain(None, Mishap("sagemaker:ListTrainingJobs", meanwhile=lambda: beside(yard)))
    assert yard.destroy()["Status"] == "SUCCESS"
    assert running(yard) == []


def test_a_batch_that_does_not_answer_keeps_no_training_from_its_end(yard: Yard) -> None:
    train(yard)
    yard.aws.faults.add(Kind.DENIED, "batch:ListJobs", times=1)
    outcome = yard.run_drain()
    assert outcome.error == "StillRunning"
    assert "Batch jobs could not be listed or ended" in outcome.cause
    assert [one.stopped_at is not None for one in yard.aws.sagemaker(PLACE.region).alive()] == [True]
