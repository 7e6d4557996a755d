"""The end of a grid, of a container and of a line, in every order with a submission: nothing of ours is left running."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from contract import records
from contract.codec import encode
from contract.grid import ExitCode, LineOutcome
from localaws.services.sagemaker_planned import Life
from tests.fakes.clock import Killed
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.grid_yard import BATCH_JOB, BUCKET, NOW, PREFIX, GridYard, planned, request_of, sigterm

CREATE = "sagemaker:CreateTrainingJob"
DESCRIBE = "sagemaker:DescribeTrainingJob"


def quick(_: str) -> Life:
    """A training that ends within the grace of its child."""
    return Life(sigterm_s=5, uploading_s=5)


def running(yard: GridYard) -> int:
    return sum(one.lives(yard.aws.clock.now) for one in yard.sagemaker().trainings.values())


# The grid is to end


@pytest.mark.parametrize("attempt", [1, 2])
def test_once_the_grid_is_to_end_nothing_is_submitted(yard: GridYard, attempt: int) -> None:
    yard.stop()
    assert yard.run(attempt=attempt) == ExitCode.FINAL
    assert yard.calls("CreateTrainingJob") == 0
    assert yard.record() is None


def test_a_child_that_waits_for_its_turn_submits_nothing_any_more() -> None:
    with planned(400) as yard:
        yard.at(20, yard.stop)
        assert yard.run(399) == ExitCode.FINAL
        assert yard.calls("CreateTrainingJob") == 0


def test_a_child_that_waits_for_quota_submits_nothing_any_more(yard: GridYard) -> None:
    yard.sagemaker().quotas["ml.g5.xlarge", False] = 1
    yard.at(4000, yard.stop)
    assert yard.run() == ExitCode.FINAL
    assert yard.record() is None


def test_a_grid_that_ends_during_the_submission_stops_the_training(yard: GridYard) -> None:
    """Between the look and the answer: who ends the grid looked for trainings before there was one."""
    assert yard.run(mishaps=[Mishap(CREATE, meanwhile=yard.stop)]) == ExitCode.DONE
    training, record = yard.trained(), yard.recorded()
    assert training.stopped_at is not None
    assert training.stopped_at < training.created_at + 1
    assert record.outcome is LineOutcome.STOPPED
    assert running(yard) == 0


@pytest.mark.parametrize("kind", [Kind.LOST, Kind.ERROR_AFTER])
def test_a_grid_that_ends_during_a_submission_without_answer_stops_the_training(yard: GridYard, kind: Kind) -> None:
    assert yard.run(mishaps=[Mishap(CREATE, meanwhile=yard.stop, fault=kind)]) == ExitCode.DONE
    assert running(yard) == 0
    assert yard.recorded().outcome is LineOutcome.STOPPED


def test_a_child_killed_between_the_submission_and_the_second_look_leaves_it_to_its_retry(yard: GridYard) -> None:
    with pytest.raises(Killed):
        yard.run(mishaps=[Mishap(CREATE, death=Death.AFTER)])
    yard.stop()
    assert running(yard) == 1
    assert yard.run(attempt=2) == ExitCode.DONE
    assert running(yard) == 0
    assert yard.recorded().outcome is LineOutcome.STOPPED


def test_of_a_grid_that_is_to_end_a_strangers_training_is_left_alone(yard: GridYard) -> None:
    training = yard.sagemaker().add(yard.lines[0].request | {"Tags": []})
    yard.stop()
    assert yard.run(attempt=2) == ExitCode.DONE
    assert training.stopped_at is None


def test_a_stop_that_is_throttled_is_asked_again(yard: GridYard) -> None:
    stop = Mishap("sagemaker:StopTrainingJob", times=4, fault=Kind.THROTTLED)
    assert yard.run(mishaps=[Mishap(CREATE, meanwhile=yard.stop), stop]) == ExitCode.DONE
    assert running(yard) == 0


# SIGTERM


@pytest.mark.parametrize("after_s", [0.01, 0.1, 5, 300])
def test_a_retired_task_leaves_its_training_running_and_the_retry_adopts_it(yard: GridYard, after_s: float) -> None:
    yard.aws.batch.add(BATCH_JOB)
    assert yard.run(waits=sigterm(yard, after_s)) == ExitCode.AGAIN
    training = yard.training()
    assert training is None or training.stopped_at is None
    assert yard.run(attempt=2) == ExitCode.DONE
    assert yard.calls("CreateTrainingJob") == 1
    assert yard.recorded().outcome is LineOutcome.COMPLETED


@pytest.mark.parametrize("how", ["terminated", "cancelled"])
def test_a_job_that_somebody_ended_stops_its_training_within_the_grace(yard: GridYard, how: str) -> None:
    yard.aws.batch.add(BATCH_JOB, ended=how)
    yard.sagemaker().life = quick
    assert yard.run(waits=sigterm(yard, 300)) == ExitCode.DONE
    training = yard.trained()
    assert training.stopped_at is not None
    assert training.stopped_at - NOW < 310
    assert running(yard) == 0


def test_the_parents_end_is_the_childs() -> None:
    with planned(3) as yard:
        yard.aws.batch.add(BATCH_JOB, children=3, ended="terminated")
        yard.run(1, waits=sigterm(yard, 300))
        assert yard.trained(1).stopped_at is not None


def test_a_training_that_takes_its_time_to_end_is_stopped_and_not_waited_for(yard: GridYard) -> None:
    yard.aws.batch.add(BATCH_JOB, ended="terminated")
    yard.sagemaker().life = lambda _: Life(sigterm_s=120)
    assert yard.run(waits=sigterm(yard, 300)) == ExitCode.AGAIN
    assert yard.aws.clock.now - NOW < 300 + 30
    assert yard.trained().stopped_at is not None
    assert yard.record() is None


@pytest.mark.parametrize("kind", [Kind.UNREACHABLE, Kind.DENIED, Kind.ERROR, Kind.THROTTLED])
def test_when_batch_cannot_say_why_the_training_is_left_running(yard: GridYard, kind: Kind) -> None:
    yard.aws.batch.add(BATCH_JOB, ended="terminated")
    mishaps = [Mishap("batch:DescribeJobs", times=1e9, fault=kind)]
    assert yard.run(waits=sigterm(yard, 300), mishaps=mishaps) == ExitCode.AGAIN
    assert yard.aws.clock.now - NOW < 300 + 30
    assert running(yard) == 1


def test_a_job_that_batch_does_not_know_leaves_its_training_running(yard: GridYard) -> None:
    assert yard.run(waits=sigterm(yard, 300)) == ExitCode.AGAIN
    assert running(yard) == 1


def test_a_process_that_no_batch_started_leaves_its_training_running(yard: GridYard) -> None:
    assert yard.run(waits=sigterm(yard, 300), changes={"AWS_BATCH_JOB_ID": None}) == ExitCode.AGAIN
    assert yard.calls("DescribeJobs") == 0
    assert running(yard) == 1


def test_batch_is_asked_again_within_the_grace(yard: GridYard) -> None:
    yard.aws.batch.add(BATCH_JOB, ended="terminated")
    yard.sagemaker().life = quick
    mishaps = [Mishap("batch:DescribeJobs", times=3, fault=Kind.ERROR)]
    assert yard.run(waits=sigterm(yard, 300), mishaps=mishaps) == ExitCode.DONE
    assert running(yard) == 0


def test_a_job_ended_before_its_turn_makes_no_training() -> None:
    with planned(400) as yard:
        yard.aws.batch.add(BATCH_JOB, children=400, ended="terminated")
        assert yard.run(399, waits=sigterm(yard, 20)) == ExitCode.FINAL
        assert yard.calls("CreateTrainingJob") == 0


def test_a_second_sigterm_changes_nothing(yard: GridYard) -> None:
    yard.aws.batch.add(BATCH_JOB, ended="terminated")
    yard.sagemaker().life = quick
    waits = sigterm(yard, 300)
    yard.at(302, waits.called)
    assert yard.run(waits=waits) == ExitCode.DONE
    assert running(yard) == 0


def test_an_ended_job_does_not_stop_a_stranger(yard: GridYard) -> None:
    training = yard.sagemaker().add(yard.lines[0].request | {"Tags": []})
    yard.aws.batch.add(BATCH_JOB, ended="terminated")
    assert yard.run(attempt=2, waits=sigterm(yard, 0.09)) == ExitCode.FINAL
    assert training.stopped_at is None


# A second child, and a child that dies


@pytest.mark.parametrize("call", ["s3:GetObject", CREATE, DESCRIBE, "s3:PutObject"])
@pytest.mark.parametrize("death", list(Death))
@pytest.mark.parametrize("nth", [1, 2, 4])
def test_wherever_a_child_dies_its_retry_makes_one_training_and_one_record(
    yard: GridYard, call: str, death: Death, nth: int
) -> None:
    try:
        yard.run(mishaps=[Mishap(call, nth=nth, death=death)])
    except Killed:
        assert yard.run(attempt=2) == ExitCode.DONE
    assert len(yard.sagemaker().trainings) == 1
    assert len(yard.aws.s3.buckets[BUCKET].objects[PREFIX.record(0)]) == 1
    assert running(yard) == 0


@pytest.mark.parametrize("call", ["s3:GetObject", CREATE, DESCRIBE, "s3:PutObject"])
@pytest.mark.parametrize("nth", [1, 3, 5])
def test_a_second_child_at_any_moment_makes_no_second_training_and_no_second_record(
    yard: GridYard, call: str, nth: int
) -> None:
    def second() -> None:
        assert yard.run(attempt=1, seed=9) == ExitCode.DONE

    assert yard.run(mishaps=[Mishap(call, nth=nth, meanwhile=second)]) == ExitCode.DONE
    assert len(yard.sagemaker().trainings) == 1
    assert len(yard.aws.s3.buckets[BUCKET].objects[PREFIX.record(0)]) == 1


def submitted_elsewhere(yard: GridYard) -> Callable[[], None]:
    """A second child gets its submission through."""
    return lambda: None if yard.training() else (yard.sagemaker().add(request_of(0, "eu-central-1")), None)[1]


def test_a_line_is_not_refused_while_another_child_has_its_training(yard: GridYard) -> None:
    """This one may not submit, that one could: the training is adopted."""
    create = Mishap(CREATE, fault=Kind.DENIED, meanwhile=submitted_elsewhere(yard))
    assert yard.run(mishaps=[create]) == ExitCode.DONE
    assert yard.recorded().outcome is LineOutcome.COMPLETED


def test_a_training_submitted_while_its_line_was_refused_is_stopped_by_who_refused(yard: GridYard) -> None:
    put = Mishap("s3:PutObject", meanwhile=submitted_elsewhere(yard))
    assert yard.run(mishaps=[Mishap(CREATE, fault=Kind.DENIED), put]) == ExitCode.DONE
    assert yard.trained().stopped_at is not None


def test_a_training_submitted_after_its_line_was_refused_is_stopped_by_who_submitted(yard: GridYard) -> None:
    def refuse() -> None:
        yard.put(PREFIX.record(0), encode(records.refused(yard.lines[0], "said another child")))

    assert yard.run(mishaps=[Mishap(CREATE, meanwhile=refuse)]) == ExitCode.DONE
    training, record = yard.trained(), yard.recorded()
    assert training.stopped_at is not None
    assert running(yard) == 0
    assert record.outcome is LineOutcome.REFUSED


def test_a_child_that_died_after_a_submission_that_was_refused_elsewhere_is_cleaned_up_by_its_retry(
    yard: GridYard,
) -> None:
    with pytest.raises(Killed):
        yard.run(mishaps=[Mishap(CREATE, death=Death.AFTER)])
    yard.put(PREFIX.record(0), encode(records.refused(yard.lines[0], "said another child")))
    assert yard.run(attempt=2) == ExitCode.DONE
    assert yard.trained().stopped_at is not None
