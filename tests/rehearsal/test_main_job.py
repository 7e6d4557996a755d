"""The main job on the local AWS: the real templates, machine, functions and node agent, under a real account's conditions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from contract import keys, names, tags
from contract.codec import decode
from contract.commits import Commit
from localaws.services import ec2
from localaws.testing.waiting import until
from rehearsal.deployment import ACCOUNT
from rehearsal.summary import Summary, shortcomings, summarise
from rehearsal.yard import StartedJob, Yard
from stacks.parts import jsonata
from tests.rehearsal.jobs import (
    AGAIN,
    BEGIN,
    DENIALS,
    HAPPY,
    ONE,
    changes,
    ended,
    failed,
    instances,
    left,
    path,
    stored,
    succeeded,
    train,
)
from tests.rehearsal.mailbox import Mailbox

pytestmark = [pytest.mark.rehearsal]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def jobs(first_wave: dict[str, StartedJob], second_wave: dict[str, StartedJob]) -> dict[str, StartedJob]:
    """Those of the second wave train while most tests here look at the first."""
    return first_wave | second_wave


def summary(job: StartedJob) -> Summary:
    ended(job)
    return summarise(job, wall_s=0.0)


def done_again(job: StartedJob) -> int:
    """Counts how often Train began again for a lost heartbeat, which a busy machine loses."""
    return job.states().count("Lost heartbeat")


def artifact(yard: Yard, job: StartedJob, name: str, rank: int = 0) -> dict[str, Any]:
    key = keys.BytesPrefix(job.name).artifact(rank, name)
    document: dict[str, Any] = json.loads(stored(yard, key, yard.places.bytes_))
    return document


def test_two_nodes_train_together_and_everything_is_where_the_docs_say(yard: Yard, jobs: dict[str, StartedJob]) -> None:
    done = summary(jobs["digits"])
    assert (done.status, path(jobs["digits"])) == ("SUCCEEDED", HAPPY)
    assert shortcomings(done, nodes=2, metric_at_least=0.93) == []
    assert artifact(yard, jobs["digits"], "summary-1.json", rank=1)["world_size"] == 2
    assert left(jobs["digits"]) == []
    listed = json.loads(stored(yard, keys.JobPrefix("digits").artifacts(1)))
    assert {file["path"] for file in listed["artifacts"]} == {"summary-0.json", "summary-1.json", "digits.pt"}
    assert any("accuracy" in line for line in jobs["digits"].log("digits/1/0"))


def test_a_job_ten_times_as_long_costs_no_more_transitions_and_events(jobs: dict[str, StartedJob]) -> None:
    for name in ("short", "long"):
        done, again = summary(jobs[name]), done_again(jobs[name])
        assert path(jobs[name]) == HAPPY
        assert done.transitions - 2 * again <= 12
        assert done.history_events - 10 * again <= 80


def test_the_last_line_of_output_reaches_the_log(jobs: dict[str, StartedJob]) -> None:
    ended(jobs["short"])
    assert "rank 0 is done, the last line" in jobs["short"].log("short/1/0")


def test_a_process_that_exits_non_zero_fails_the_job_with_its_last_lines(jobs: dict[str, StartedJob]) -> None:
    job = jobs["failing"]
    cause = failed(job, "TrainingFailed")
    job.settle()
    assert "rank 1: the command exited with code 3" in cause
    assert "rank 1 is done, the last line" in cause
    assert "failing/1/1" in cause
    assert left(job) == []
    assert job.states()[-3:] == ["Terminate", "Decide", "Failed"]


def test_a_job_is_stopped_ahead_of_its_deadline_with_a_last_checkpoint(jobs: dict[str, StartedJob]) -> None:
    job = jobs["overdue"]
    execution = ended(job)
    assert (execution["status"], execution["error"]) == ("FAILED", "DeadlineReached")
    assert left(job) == []
    if jsonata.LATE_CAUSE in execution["cause"]:
        return  # on a slow machine the state's own time-out is sooner than the node's last commit, or the attendant's look
    report = job.reports(1)[0]
    assert report.exit is not None
    assert (report.exit.code, report.exit.ordered) == (143, True)
    assert report.checkpoint_step > 0
    assert f"step {report.checkpoint_step}" in execution["cause"]


def test_a_job_is_stopped_before_its_money_is_used_up_and_everything_is_saved(jobs: dict[str, StartedJob]) -> None:
    job = jobs["broke"]
    execution = ended(job)
    assert (execution["status"], execution["error"]) == ("FAILED", "BudgetExceeded")
    assert left(job) == []
    if jsonata.LATE_CAUSE not in execution["cause"]:
        assert "has used up the $0.004 of its max_cost_usd" in execution["cause"]
    assert job.reports(1)[0].checkpoint_step > 0
    (paid,) = (one for one in ec2.machines().all() if one.tags[tags.JOB] == job.name)
    assert (paid.ending_at - paid.launched_at) / 3600 * (0.096 + 0.0952 * 200 / 720) <= 0.004


def test_a_plan_has_its_price_and_starts_nothing(yard: Yard, jobs: dict[str, StartedJob]) -> None:
    job = jobs["planned"]
    told = json.loads(succeeded(job)["output"])
    assert job.states() == [*BEGIN, "Planned"]
    assert told["estimate"]["usd_at_most"] > 0
    assert (instances(job), changes(job)) == ([], [])
    with pytest.raises(ClientError):
        stored(yard, keys.JobPrefix("planned").description)


def test_a_name_that_belongs_to_another_executions_job_is_refused(
    yard: Yard, jobs: dict[str, StartedJob], trainer: str
) -> None:
    ended(jobs["short"])
    short, taken = keys.JobPrefix("short").description, keys.JobPrefix("taken").description
    document = stored(yard, short).replace(b'"id": "short"', b'"id": "taken"')
    yard.client("s3").put_object(Bucket=yard.places.home, Key=taken, Body=document)
    execution = ended(yard.start({**ONE, "code": trainer, "command": train(1, 0.1)}, "taken"))
    assert "taken is the name of a job of another execution" in execution["cause"]
    assert stored(yard, taken) == document


def test_two_rungs_and_two_attempts_end_in_success_from_the_last_checkpoint(
    yard: Yard, jobs: dict[str, StartedJob]
) -> None:
    job = jobs["recovering"]
    execution = succeeded(job)
    job.settle()
    assert path(job) == AGAIN
    output = json.loads(execution["output"])
    assert output["attempts"] == 2
    assert [rung["answer"] for rung in output["rungs"]][:2] == ["InsufficientInstanceCapacity", "launched"]
    assert job.reports(2)[0].restored_step > 0
    assert artifact(yard, job, "result-0.json")["from"] > 0
    assert left(job) == []


def test_links_times_logs_and_results_of_a_trainer_survive_a_kill(yard: Yard, jobs: dict[str, StartedJob]) -> None:
    job = jobs["keeper"]
    succeeded(job)
    job.settle()
    goes_on = [line for line in job.log("keeper/2/0") if "in the order of time" in line]
    assert goes_on, job.log("keeper/2/0")
    model = keys.BytesPrefix("keeper").artifact(0, "model.pt")
    assert stored(yard, model, yard.places.bytes_) == b"final"
    last = decode(Commit, stored(yard, job.reports(2)[0].checkpoint, yard.places.bytes_))
    assert {"results.json", "final/weights", "300/config"} <= {file.path for file in last.files}
    assert [(link.path, link.target) for link in last.links] == [("last", "300")]


@pytest.mark.turn("looks back")
def test_a_training_that_met_a_notice_and_a_kill_ends_with_the_metric_of_the_undisturbed_one(
    yard: Yard, jobs: dict[str, StartedJob]
) -> None:
    job, undisturbed = jobs["disturbed"], summary(jobs["digits"])
    succeeded(job)
    done = summary(job)
    assert shortcomings(done, nodes=2, metric_at_least=0.93) == []
    assert done.metric == pytest.approx(undisturbed.metric, abs=0.01)
    noticed, killed = done.interruptions
    assert (noticed["error"], noticed["steps_lost"], killed["error"]) == ("Interrupted", 0, "Interrupted")
    assert None not in (noticed["recovery_s"], killed["steps_lost"], killed["recovery_s"])
    written = [call.parameters.get("Key") for call in yard.aws.recorder.of(name="s3:PutObject") if call.status == 200]
    for attempt in (2, 3):
        (restored,) = {one.restored for one in job.reports(attempt).values()}
        _, of, number = restored.split("/")
        assert keys.BytesPrefix(job.name).closed(int(of), int(number)) in written  # it may be thinned since


def test_a_job_in_another_region_begins_with_the_checkpoint_of_one_that_has_ended(
    yard: Yard, jobs: dict[str, StartedJob], trainer: str
) -> None:
    succeeded(jobs["recovering"])
    last = artifact(yard, jobs["recovering"], "result-0.json")["steps"]
    request = {**ONE, "code": trainer, "command": train(last + 10, 0.1), "region": "us-east-1"}
    request["resume_from"] = "recovering"
    job = yard.start(request, "begun-further")
    succeeded(job)
    exits = [one["stateExitedEventDetails"] for one in job.history() if "stateExitedEventDetails" in one]
    admitted = json.loads(next(one["output"] for one in exits if one["name"] == "Admit"))
    assert admitted["resumes"].startswith(f"step {last} of job recovering (attempt 2, ")
    assert job.reports(1)[0].restored_step == last
    away = yard.context["trainyard"]["deployment"], ACCOUNT, "us-east-1"
    key = keys.BytesPrefix(job.name).artifact(0, "result-0.json")
    assert json.loads(stored(yard, key, names.bytes_bucket(*away)))["from"] == last


def test_people_are_told_once_that_it_trains_again_and_that_it_is_done(
    jobs: dict[str, StartedJob], mailbox: Mailbox
) -> None:
    succeeded(jobs["recovering"])
    until(lambda: mailbox.about("recovering is done"))
    told = mailbox.about("Trainyard trainyard: recovering ")
    assert [one.subject.removeprefix("Trainyard trainyard: ") for one in told] == [
        "recovering trains again (attempt 2)",
        "recovering is done",
    ]
    again, done = told
    assert "Attempt 1: NodeLost: rank 1 " in again.text
    assert "Job recovering of ada is done, after 2 attempts." in done.text
    for one in told:
        assert "of its max_cost_usd of $100" in one.text


def test_a_lost_answer_of_run_instances_makes_no_second_cluster(jobs: dict[str, StartedJob]) -> None:
    succeeded(jobs["unanswered"])
    assert len(instances(jobs["unanswered"])) == 2


def test_nodes_call_neither_ec2_nor_step_functions(yard: Yard, jobs: dict[str, StartedJob]) -> None:
    ended(jobs["digits"])
    of_nodes = [call for call in yard.aws.recorder.calls if "NodeRole" in call.role or "-job-" in call.role]
    node_calls = [call for call in of_nodes if call.error not in DENIALS]  # test_attack.py tries more
    assert node_calls
    assert {call.service for call in node_calls} <= {"s3", "dynamodb", "logs", "secretsmanager"}
    assert {call.action for call in node_calls if call.service == "dynamodb"} == {"GetItem", "PutItem"}


def test_every_call_is_recorded_with_a_role_that_is_known(yard: Yard, jobs: dict[str, StartedJob]) -> None:
    ended(jobs["short"])
    assert [call for call in yard.aws.recorder.calls if not call.role.startswith("arn:")] == []
