"""Stop and report: a grid that does not end by itself is ended, nothing of it can appear, and people hear what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from contract import tags
from contract.codec import encode
from contract.errors import StillTraining
from contract.grid import LineOutcome
from contract.records import refused
from localaws.services.sagemaker_planned import Life
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.grid_yard import BUCKET, EXECUTION
from tests.functions.grid_collect.collecting import PREFIX, Yard, collected

BROKEN = {"error": "GridFailed", "cause": "it went wrong"}
STUBBORN = Life(uploading_s=10_000.0)
"""A training that uploads for hours after it was stopped."""


@pytest.fixture
def yard() -> Iterator[Yard]:
    with collected() as made:
        yield made


# Stop


def test_a_stop_ends_every_training_and_every_job_and_collects_what_there_is(yard: Yard) -> None:
    yard.complete(0)
    yard.submit()
    yard.train(1, 2)
    stopped = yard.stop_until_over(BROKEN).value
    assert yard.alive() == []
    assert {job["status"] for job in yard.aws.batch.jobs.values()} == {"FAILED"}
    outcomes = {index: record.outcome for index, record in yard.records().items()}
    assert outcomes == {
        0: LineOutcome.COMPLETED,
        1: LineOutcome.STOPPED,
        2: LineOutcome.STOPPED,
        3: LineOutcome.STOPPED,
    }
    assert stopped["totals"]["outcomes"] == {"Completed": 1, "Failed": 0, "Stopped": 3, "Refused": 0}
    assert (stopped["problem"], stopped["left"]) == (BROKEN, 0)


def test_children_are_kept_from_creating_before_anything_is_ended(yard: Yard) -> None:
    yard.submit()
    yard.train(0)
    seen: list[bool] = []

    def note_fence() -> None:
        seen.append(yard.aws.s3.read(BUCKET, PREFIX.stopped) is not None)

    yard.stop_grid(
        BROKEN, [Mishap("batch:TerminateJob", meanwhile=note_fence), Mishap("sagemaker:Stop*", meanwhile=note_fence)]
    )
    assert seen == [True, True]


def test_a_line_that_was_never_submitted_says_why(yard: Yard) -> None:
    yard.stop_until_over(BROKEN)
    record = yard.records()[0]
    assert record.outcome is LineOutcome.STOPPED
    assert "before this line was submitted (GridFailed)" in record.reason
    assert record.cost_usd == 0.0
    assert len(yard.json_lines(PREFIX.failed)) == 4


def test_no_line_is_given_up_while_a_child_may_still_create_its_training(yard: Yard) -> None:
    yard.submit()
    outcome = yard.stop_grid(BROKEN)
    assert outcome.error == StillTraining.__name__
    assert yard.records() == {}


def test_a_training_that_appears_after_the_first_look_is_stopped_too(yard: Yard) -> None:
    yard.submit()
    yard.stop_grid(BROKEN)
    yard.train(2)  # its child had looked for the fence a moment before it was there
    yard.stop_until_over(BROKEN)
    assert yard.alive() == []
    assert "was stopped" in yard.records()[2].reason


def test_a_stop_that_was_called_is_not_over_before_the_trainings_are(yard: Yard) -> None:
    yard.train(0)
    assert yard.stop_grid(BROKEN).error == StillTraining.__name__
    assert len(yard.alive()) == 1  # SageMaker gives it time to end
    yard.settle(300)
    assert yard.stop_grid(BROKEN).error == ""


def test_when_the_patience_is_over_what_is_left_is_named_and_the_rest_is_collected(yard: Yard) -> None:
    yard.complete(0)
    yard.train(1, life=STUBBORN)
    yard.settle(400)
    stopped = yard.stop_until_over(BROKEN).value
    assert stopped["left"] == 1
    assert stopped["problem"]["error"] == "GridFailed"
    assert stopped["problem"]["cause"].startswith("it went wrong")
    assert yard.lines[1].training in stopped["problem"]["cause"]
    assert stopped["totals"]["unfinished"] == 1
    assert [row["index"] for row in yard.table()] == ["0", "2", "3"]
    assert yard.lines[1].source in yard.json_lines(PREFIX.failed)


def test_a_stranger_under_a_lines_name_is_not_stopped(yard: Yard) -> None:
    yard.train(1, marks={tags.DEPLOYMENT: "other"})
    yard.stop_until_over(BROKEN)
    assert len(yard.alive()) == 1
    assert yard.records()[1].outcome is LineOutcome.REFUSED


def test_a_training_that_a_person_protects_runs_on_and_is_named(yard: Yard) -> None:
    yard.train(0)
    yard.train(1, marks={tags.PROTECTED: "ann looks at it"})
    stopped = yard.stop_until_over(BROKEN).value
    assert [one.name for one in yard.alive()] == [yard.lines[1].training]
    assert (stopped["left"], stopped["totals"]["unfinished"]) == (0, 1)
    assert "protected" in stopped["problem"]["cause"]
    assert yard.lines[1].training in stopped["problem"]["cause"]


def test_jobs_of_other_grids_and_deployments_run_on(yard: Yard) -> None:
    yard.submit(grid="sweep-2")
    yard.submit(execution=EXECUTION.replace("sweep", "other"))
    yard.aws.batch.add("theirs", queue="yard-grid", tags={tags.DEPLOYMENT: "other", tags.GRID: "sweep"})
    yard.stop_until_over(BROKEN)
    assert not any(job.get("isTerminated") for job in yard.aws.batch.jobs.values())


def test_a_stop_twice_at_the_same_time_ends_the_same_way(yard: Yard) -> None:
    yard.submit()
    yard.train(0, 1)
    yard.stop_grid(BROKEN, [Mishap("batch:ListJobs", nth=2, meanwhile=yard.stop_beside)])
    yard.stop_until_over(BROKEN)
    assert yard.alive() == []
    versions = yard.aws.s3.buckets[BUCKET].objects
    assert {len(versions[PREFIX.record(index)]) for index in range(4)} == {1}
    assert len(versions[PREFIX.stopped]) == 1


@pytest.mark.parametrize("nth", range(1, 16, 2))
def test_a_stop_that_is_killed_anywhere_is_made_good_by_the_next(yard: Yard, nth: int) -> None:
    yard.submit()
    yard.train(0, 1)
    yard.stop_grid(BROKEN, [Mishap("*", nth=nth, death=Death.AFTER)])
    yard.stop_until_over(BROKEN)
    assert yard.alive() == []
    assert len(yard.records()) == 4


def test_a_region_that_does_not_answer_keeps_no_other_training_from_its_end(yard: Yard) -> None:
    yard.train(0, 1, 2, 3)
    dark = Mishap("sagemaker:*", region=yard.lines[0].region, fault=Kind.UNREACHABLE, times=float("inf"))
    assert yard.stop_grid(BROKEN, [dark]).error == StillTraining.__name__
    assert [one.name for one in yard.alive() if one.stopped_at is None] == [yard.lines[0].training]
    yard.stop_until_over(BROKEN)
    assert yard.alive() == []


def test_a_few_lines_that_fail_are_no_region_that_does_not_answer() -> None:
    with collected(40, ["eu-west-1"]) as yard:
        yard.train(*range(40))
        now_and_then = [
            Mishap("sagemaker:StopTrainingJob", nth=nth, fault=Kind.DENIED) for nth in (3, 8, 13, 18, 23, 28, 33)
        ]
        outcome = yard.stop_grid(BROKEN, now_and_then)
        assert outcome.error == StillTraining.__name__
        assert len([one for one in yard.alive() if one.stopped_at is None]) == len(now_and_then)


def test_a_batch_that_does_not_answer_keeps_no_training_from_its_end(yard: Yard) -> None:
    yard.submit()
    yard.train(0, 1)
    outcome = yard.stop_grid(BROKEN, [Mishap("batch:*", fault=Kind.DENIED, times=float("inf"))])
    assert outcome.error == StillTraining.__name__
    assert "jobs that Batch did not list" in outcome.cause
    assert [one for one in yard.alive() if one.stopped_at is None] == []
    assert yard.records() == {}  # its children may create the others yet


def test_a_job_that_cannot_be_ended_keeps_no_other_and_no_training_from_its_end(yard: Yard) -> None:
    first, second = yard.submit(), yard.submit()
    yard.train(0)
    outcome = yard.stop_grid(BROKEN, [Mishap("batch:TerminateJob", fault=Kind.DENIED)])
    assert "AccessDenied" in outcome.cause
    assert sorted(yard.aws.batch.jobs[one]["isTerminated"] for one in (first, second)) == [False, True]
    assert [one for one in yard.alive() if one.stopped_at is None] == []


def test_a_training_that_is_stopping_is_not_told_again(yard: Yard) -> None:
    """Or a look at ten thousand would use up SageMaker's patience on those that end anyway."""
    yard.train(0, 1)
    yard.stop_grid(BROKEN)
    yard.stop_grid(BROKEN)
    assert len([call for call in yard.aws.calls if call.operation == "StopTrainingJob"]) == 2


def test_a_training_that_appears_while_its_line_is_given_up_is_stopped(yard: Yard) -> None:
    """Its child was killed when its submission was on its way: nobody else would hear of it."""

    def appear() -> None:
        yard.train(0)

    yard.stop_grid(BROKEN, [Mishap("s3:PutObject", nth=2, meanwhile=appear)])
    assert [one.stopped_at is not None for one in yard.alive()] == [True]
    assert len(yard.records()) == 4


def test_a_queue_that_is_not_there_has_no_jobs(yard: Yard) -> None:
    yard.aws.batch.queues.clear()
    assert yard.stop_until_over(BROKEN).value["left"] == 0


def test_a_stop_without_a_problem_says_that_it_was_stopped(yard: Yard) -> None:
    assert yard.stop_until_over(None).value["problem"] == {"error": "GridFailed", "cause": "It was stopped."}


# Report


def test_the_report_is_written_and_people_are_told_once(yard: Yard) -> None:
    yard.complete(0, 1, 2)
    yard.put(PREFIX.record(3), encode(refused(yard.lines[3], "no such image")))
    totals = yard.collect().value["totals"]
    answer = yard.report(totals)
    assert yard.report(totals).value == answer.value
    ((subject, text),) = yard.aws.topics.messages
    assert "3 of 4 lines completed" in subject
    assert "no such image" in text
    assert f"s3://{BUCKET}/{PREFIX.failed}" in text
    report = json.loads(yard.text(PREFIX.report))
    assert report["problem"] is None
    assert report["results"]["csv"] == f"s3://{BUCKET}/{PREFIX.results_csv}"
    assert "prefix=grids%2Fsweep%2Freport.html" in answer.value["page"]
    assert f"Page: {answer.value['page']}\n" in text
    assert len(json.dumps(answer.value)) < 20_000


def test_a_grid_whose_lines_all_completed_names_nothing_to_start_again(yard: Yard) -> None:
    yard.complete(0, 1, 2, 3)
    yard.report(yard.collect().value["totals"])
    ((_, text),) = yard.aws.topics.messages
    assert "again" not in text
    assert "Why" not in text


def test_the_report_of_a_stopped_grid_has_its_error(yard: Yard) -> None:
    totals = yard.stop_until_over(BROKEN).value["totals"]
    yard.report(totals, BROKEN)
    ((subject, text),) = yard.aws.topics.messages
    assert "was stopped" in subject
    assert "GridFailed: it went wrong" in text
    assert json.loads(yard.text(PREFIX.report))["problem"] == BROKEN


def test_a_message_that_does_not_get_through_fails_no_grid(yard: Yard) -> None:
    yard.complete(0, 1, 2, 3)
    totals = yard.collect().value["totals"]
    yard.aws.faults.add(Kind.DENIED, "sns:Publish", times=10)
    assert yard.report(totals).error == ""
    assert yard.text(PREFIX.report)


def test_a_report_that_is_killed_before_it_stands_tells_people_again(yard: Yard) -> None:
    """Twice is better than not at all."""
    yard.complete(0, 1, 2, 3)
    totals = yard.collect().value["totals"]
    event = {"action": "report", "grid": "sweep", "totals": totals, "problem": None}
    yard.functions.invoke("grid_collect", event, [Mishap("sns:Publish", death=Death.BEFORE)])
    assert yard.aws.s3.read(BUCKET, PREFIX.report) is None
    yard.report(totals)
    assert len(yard.aws.topics.messages) == 1


def test_a_report_that_cannot_be_read_is_written_again(yard: Yard) -> None:
    yard.put(PREFIX.report, b"{")
    yard.complete(0, 1, 2, 3)
    assert yard.report(yard.collect().value["totals"]).error == ""
    assert json.loads(yard.text(PREFIX.report))["completed"] == 4
