"""The reaper and grids: a training whose grid is over ends after two looks, and nothing else does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import pytest

from aws.service_models import narrow
from contract import metrics, names, tags
from contract.grid import training_name
from localaws.services.sagemaker_jobs import Training
from localaws.services.sagemaker_planned import Life, Planned
from tests.builders import JOB, PLACE
from tests.fakes.executions import GRID_MACHINE, Execution
from tests.fakes.faults import Kind, Mishap
from tests.fakes.grid_yard import request_of
from tests.fakes.yard import ABROAD
from tests.functions.reaper.reaped import Yard, reaped

LONG = Life(training_s=1e7)
QUEUE = names.grid_queue(JOB.deployment)
HOUR = 3600.0


@pytest.fixture
def yard() -> Iterator[Yard]:
    with reaped() as one:
        yield one


def grid(yard: Yard, name: str = "sweep") -> Execution:
    """A grid runs since an hour."""
    execution = yard.fake.states.executions.begin(name, GRID_MACHINE)
    yard.fake.clock.run(HOUR)
    return execution


def there(yard: Yard, region: str = ABROAD.region) -> Planned:
    found = yard.fake.sagemaker(region)
    found.life = lambda _: LONG
    return found


def train(
    yard: Yard,
    execution: Execution,
    index: int = 0,
    *,
    region: str = ABROAD.region,
    name: str = "",
    marks: Mapping[str, str | None] | None = None,
) -> Training:
    """A training of the grid that runs since an hour; `marks` over its tags, None takes one away."""
    usual: dict[str, str | None] = {
        tags.DEPLOYMENT: JOB.deployment,
        tags.GRID: execution.name,
        tags.LINE: str(index),
        tags.EXECUTION: execution.arn,
    }
    wanted = usual | dict(marks or {})
    request = request_of(
        index,
        region,
        TrainingJobName=name or training_name(JOB.deployment, execution.arn, "2027-01-15T08:00:00.000Z", index),
        Tags=[{"Key": key, "Value": value} for key, value in wanted.items() if value is not None],
    )
    made = there(yard, region).add(request)
    made.created_at -= HOUR
    return made


def over(yard: Yard, execution: Execution, ago: float = HOUR) -> None:
    yard.fake.states.executions.end(execution, "ABORTED")
    execution.ended_at = yard.now - ago


def stopped(training: Training) -> bool:
    return training.stopped_at is not None


def test_a_training_whose_grid_is_over_is_stopped_at_the_second_look(yard: Yard) -> None:
    execution = grid(yard)
    training = train(yard, execution)
    over(yard, execution)
    yard.run()
    assert not stopped(training)
    yard.reaping.later()
    assert stopped(training)
    ((subject, text),) = yard.fake.topics.messages
    assert "ended 1" in subject
    assert f"training {training.name} in {ABROAD.region} of grid sweep" in text
    assert "two minutes" in text


def test_a_training_whose_grid_runs_is_kept_and_nobody_is_called(yard: Yard) -> None:
    training = train(yard, grid(yard))
    outcome = yard.run(4)
    assert not stopped(training)
    assert outcome.value[metrics.TOLD] == 0
    assert yard.fake.topics.messages == []


def test_a_training_whose_grid_ended_a_moment_ago_is_its_own_cleanups(yard: Yard) -> None:
    execution = grid(yard)
    training = train(yard, execution)
    over(yard, execution, ago=0)
    yard.run(2)
    assert not stopped(training)


def test_a_training_of_another_deployment_with_the_same_beginning_is_never_touched(yard: Yard) -> None:
    execution = grid(yard)
    theirs = train(yard, execution, name="yard-two-sweep-0123456789ab-0", marks={tags.DEPLOYMENT: "yard-two"})
    untagged = train(yard, execution, name="yard-mine-0", marks={tags.DEPLOYMENT: None})
    over(yard, execution)
    yard.run(4)
    assert not stopped(theirs)
    assert not stopped(untagged)
    assert yard.fake.topics.messages == []


def test_a_stranger_among_the_names_of_a_grid_is_not_stopped_with_it(yard: Yard) -> None:
    """One of ours speaks for the group, until the moment of the end."""
    execution = grid(yard)
    ours = train(yard, execution, 0)
    stranger = train(yard, execution, 1, marks={tags.DEPLOYMENT: "other"})
    by_hand = train(yard, execution, 2, marks={tags.EXECUTION: None})
    over(yard, execution)
    yard.run(4)
    assert stopped(ours)
    assert not stopped(stranger)
    assert not stopped(by_hand)


def test_a_stranger_that_comes_first_hides_nobody(yard: Yard) -> None:
    execution = grid(yard)
    train(yard, execution, 0, marks={tags.DEPLOYMENT: "other"})
    ours = [train(yard, execution, index) for index in (1, 2)]
    over(yard, execution)
    yard.run(3)
    assert all(map(stopped, ours))


def test_a_protected_training_is_kept(yard: Yard) -> None:
    execution = grid(yard)
    training = train(yard, execution, marks={tags.PROTECTED: "ann looks at it"})
    over(yard, execution)
    yard.run(4)
    assert not stopped(training)


def test_a_protected_training_keeps_no_other_of_its_grid(yard: Yard) -> None:
    execution = grid(yard)
    kept, other = train(yard, execution, 0, marks={tags.PROTECTED: "x"}), train(yard, execution, 1)
    over(yard, execution)
    yard.run(3)
    assert (stopped(kept), stopped(other)) == (False, True)


def test_one_that_is_protected_between_two_looks_is_kept(yard: Yard) -> None:
    execution = grid(yard)
    first, second = train(yard, execution, 0), train(yard, execution, 1)
    over(yard, execution)
    yard.run()
    second.tags[tags.PROTECTED] = "a second look"
    yard.reaping.later()
    assert stopped(first)
    assert not stopped(second)


def test_a_training_whose_grid_nobody_knows_is_kept_and_told_however_old_it_is(yard: Yard) -> None:
    """SageMaker ends it by itself in the end."""
    execution = grid(yard)
    training = train(yard, execution, marks={tags.EXECUTION: "somebody changed it"})
    training.created_at -= 2000 * HOUR
    assert yard.run(4).value[metrics.TOLD] == 1
    assert not stopped(training)


def test_a_grid_that_cannot_be_asked_for_keeps_its_trainings(yard: Yard) -> None:
    execution = grid(yard)
    training = train(yard, execution)
    over(yard, execution)
    yard.run()
    yard.fake.faults.add(Kind.DENIED, "stepfunctions:DescribeExecution", times=50)
    for _ in range(3):
        yard.reaping.later()
    assert not stopped(training)


def test_a_region_whose_sagemaker_does_not_answer_ends_nothing_there_and_says_so(yard: Yard) -> None:
    execution = grid(yard)
    abroad, at_home = train(yard, execution), train(yard, execution, 1, region=PLACE.region)
    over(yard, execution)
    yard.run()
    yard.fake.clock.run(300)
    dark = Mishap("sagemaker:*", region=ABROAD.region, fault=Kind.UNREACHABLE, times=float("inf"))
    outcome = yard.reaping.run(mishaps=[dark])
    assert outcome.error == "Unfinished"
    assert not stopped(abroad)
    assert stopped(at_home)


def test_a_stop_that_sagemaker_refuses_is_told(yard: Yard) -> None:
    execution = grid(yard)
    training = train(yard, execution)
    over(yard, execution)
    yard.run()
    yard.fake.faults.add(Kind.DENIED, "sagemaker:StopTrainingJob", times=5)
    assert training.name in yard.reaping.later().cause
    assert not stopped(training)


def test_report_only_stops_no_training() -> None:
    with reaped(report_only=True) as quiet:
        execution = grid(quiet)
        training = train(quiet, execution)
        quiet.fake.batch.add("array", queue=QUEUE, tags={tags.DEPLOYMENT: "yard", tags.EXECUTION: execution.arn})
        over(quiet, execution)
        assert quiet.run(4).value[metrics.WOULD_END] >= 1
        assert not stopped(training)
        assert quiet.written() == []


def test_a_pass_stops_no_more_trainings_than_its_share(yard: Yard) -> None:
    execution = grid(yard)
    trainings = [train(yard, execution, index) for index in range(40)]
    over(yard, execution)
    yard.run(2)
    assert sum(map(stopped, trainings)) == 8  # a fifth of those that were seen
    for _ in range(12):
        yard.reaping.later()
    assert all(map(stopped, trainings))


def test_a_grid_of_five_hundred_trainings_costs_a_pass_a_few_calls(yard: Yard) -> None:
    execution = grid(yard)
    for index in range(500):
        train(yard, execution, index)
    yard.run()
    calls = [call.operation for call in yard.fake.calls if call.service == "sagemaker"]
    assert calls.count("ListTrainingJobs") == 5 + 1
    assert calls.count("ListTags") == 1


def test_an_array_whose_grid_is_over_is_terminated_at_the_second_look(yard: Yard) -> None:
    execution = grid(yard)
    marks = {tags.DEPLOYMENT: JOB.deployment, tags.GRID: "sweep", tags.EXECUTION: execution.arn}
    yard.fake.batch.add("array", queue=QUEUE, children=2, tags=marks, age_s=HOUR)
    over(yard, execution)
    yard.run()
    assert not yard.fake.batch.jobs["array"].get("isTerminated")
    yard.reaping.later()
    assert yard.fake.batch.jobs["array"]["isTerminated"]


def test_arrays_of_running_grids_and_jobs_of_others_are_kept(yard: Yard) -> None:
    execution, gone = grid(yard), grid(yard, "gone")
    ours = {tags.DEPLOYMENT: JOB.deployment, tags.GRID: "sweep", tags.EXECUTION: execution.arn}
    yard.fake.batch.add("array", queue=QUEUE, children=2, tags=ours, age_s=HOUR)
    yard.fake.batch.add("theirs", queue=QUEUE, tags={tags.EXECUTION: gone.arn}, age_s=HOUR)
    over(yard, gone)
    yard.run(4)
    assert not any(job.get("isTerminated") for job in yard.fake.batch.jobs.values())


def test_a_deployment_without_a_queue_is_looked_at_as_ever(yard: Yard) -> None:
    yard.fake.batch.queues.clear()
    assert yard.run().value[metrics.PASSES] == 1


def test_all_that_is_asked_of_grids_services_is_what_the_cut_clients_know(yard: Yard) -> None:
    """The fake's whole clients would let anything through."""
    execution = grid(yard)
    train(yard, execution)
    marks = {tags.DEPLOYMENT: JOB.deployment, tags.GRID: "sweep", tags.EXECUTION: execution.arn}
    yard.fake.batch.add("array", queue=QUEUE, children=2, tags=marks, age_s=HOUR)
    over(yard, execution)
    yard.run(2)
    for service in ("sagemaker", "batch"):
        assert {call.operation for call in yard.fake.calls if call.service == service} == set(narrow.CALLS[service])


# executions of lines on clusters of our own


def start(yard: Yard, execution: Execution, index: int = 0, given: str = "", name: str = "") -> Execution:
    """The execution of a line, which runs since an hour."""
    mark = {"grid_line": {"execution": execution.arn, "index": index}}
    name = name or training_name(JOB.deployment, execution.arn, "2027-01-15T08:00:00.000Z", index)
    made = yard.fake.states.executions.begin(name)
    made.input, made.started_at = given or json.dumps(mark), made.started_at - HOUR
    return made


def test_an_execution_of_a_line_whose_grid_is_over_is_stopped_at_the_second_look(yard: Yard) -> None:
    execution = grid(yard)
    lines = [start(yard, execution, index) for index in range(3)]
    over(yard, execution)
    yard.run()
    assert [one.status for one in lines] == ["RUNNING"] * 3
    yard.reaping.later()
    assert [(one.status, one.error) for one in lines] == [("ABORTED", "GridEnded")] * 3
    ((subject, text),) = yard.fake.topics.messages
    assert "ended 3" in subject
    assert "of grid sweep" in text


def test_an_execution_of_a_line_whose_grid_runs_is_kept(yard: Yard) -> None:
    line = start(yard, grid(yard))
    yard.run(4)
    assert line.status == "RUNNING"
    assert yard.fake.topics.messages == []


@pytest.mark.parametrize(
    "given",
    [
        "{}",
        "not json",
        '{"grid_line": 7}',
        '{"grid_line": {"execution": "arn:aws:states:eu-central-1:123456789012:execution:lab-grid:sweep", "index": 0}}',
    ],
)
def test_an_execution_with_such_a_name_that_is_no_line_of_ours_is_never_touched(yard: Yard, given: str) -> None:
    execution = grid(yard)
    job = start(yard, execution, given=given, name=f"{JOB.deployment}-my-own-job-7")
    over(yard, execution)
    yard.run(4)
    assert job.status == "RUNNING"
    assert yard.fake.topics.messages == []


def test_a_line_of_another_deployments_grid_is_never_touched_though_its_name_begins_as_ours(yard: Yard) -> None:
    execution = yard.fake.states.executions.begin("sweep", GRID_MACHINE.replace("yard-", "lab-"))
    yard.fake.clock.run(HOUR)
    theirs = start(yard, execution)
    over(yard, execution)
    yard.run(4)
    assert theirs.status == "RUNNING"
    assert yard.fake.topics.messages == []


def test_a_job_of_a_person_is_not_even_asked_for(yard: Yard) -> None:
    execution = grid(yard)
    job = start(yard, execution, name="resnet-7")
    over(yard, execution)
    yard.run(4)
    assert job.status == "RUNNING"
    assert [one for one in yard.calls("stepfunctions:DescribeExecution") if one["executionArn"] == job.arn] == []


def test_one_execution_of_a_grid_is_read_while_scanning_however_many_it_has(yard: Yard) -> None:
    execution = grid(yard)
    lines = {start(yard, execution, index).arn for index in range(30)}
    yard.run()
    assert len([one for one in yard.calls("stepfunctions:DescribeExecution") if one["executionArn"] in lines]) == 1


def test_step_functions_that_does_not_answer_stops_no_line(yard: Yard) -> None:
    execution = grid(yard)
    line = start(yard, execution)
    over(yard, execution)
    yard.fake.faults.add(Kind.THROTTLED, "stepfunctions:*", times=10_000)
    yard.run(4)
    assert line.status == "RUNNING"


def test_a_job_of_a_person_with_the_input_of_a_line_is_never_touched(yard: Yard) -> None:
    execution = grid(yard)
    copied = json.dumps({"grid_line": {"execution": execution.arn, "index": 3}})
    job = start(yard, execution, given=copied, name=f"{JOB.deployment}-my-second-try-3")
    over(yard, execution)
    yard.run(4)
    assert job.status == "RUNNING"


def test_a_stranger_whose_name_begins_as_those_of_lines_hides_none_of_them(yard: Yard) -> None:
    execution = grid(yard)
    lines = [start(yard, execution, index) for index in range(3)]
    name = lines[0].name.rpartition("-")[0]
    strangers = [start(yard, execution, given="{}", name=f"{name}-{end}") for end in ("again", "7")]
    over(yard, execution)
    yard.run()
    yard.reaping.later()
    assert {one.status for one in lines} == {"ABORTED"}
    assert {one.status for one in strangers} == {"RUNNING"}
