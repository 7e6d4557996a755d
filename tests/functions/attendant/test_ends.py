"""People are told once how an execution ended, whatever ended it, whoever dies meanwhile, and though no event ever says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from attendant.ends import FAILURES
from attendant.telling import SENDS_S
from aws.state import State
from contract import items
from contract.codec import encode
from contract.events import ENDS, Event
from contract.jobs import Job
from tests.builders import INTENT, JOB, LAUNCHED, NOW, PLACE, rung
from tests.fakes import state
from tests.fakes.executions import Execution
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.fleet import Fleet
from tests.fakes.functions import Outcome
from tests.fakes.state import TABLE
from tests.fakes.yard import ABROAD

MINUTE = 60.0
SWEEP = {"action": "ends"}


class Watched:
    """Jobs that have been admitted, with their executions; none is in Train."""

    def __init__(self) -> None:
        self.fleet = Fleet([], now=NOW)
        self.executions = self.fleet.aws.states.executions

    def admits(self, name: str = "job-1", *notify: Event, known: bool = True, **changes: Any) -> Execution:
        execution = self.executions.begin(name)
        events = notify or tuple(Event)
        job = replace(JOB, id=name, execution=execution.arn, owner="ada", notify=events, max_cost_usd=100.0, **changes)
        State(TABLE).owe_end(job)
        if known:
            state.store(self.fleet.aws, items.job(name), encode(job))
            self.launches(job)
        self.fleet.aws.clock.now += MINUTE
        return execution

    def launches(self, job: Job, attempt: int = 1, region: str = PLACE.region) -> None:
        """On a rung of $10 an hour and node."""
        step = replace(INTENT.steps[0], rung=replace(rung(region=region), most_usd=10.0), answer=LAUNCHED)
        walk = replace(INTENT, job=job.id, attempt=attempt, started_at=self.fleet.aws.clock.now, steps=(step,))
        state.store(self.fleet.aws, items.launch(job.id, attempt, 1), encode(walk))

    def ends(self, execution: Execution, status: str = "SUCCEEDED", error: str = "", cause: str = "") -> None:
        self.executions.end(execution, status, error or None, cause or None)

    def sweep(self, *mishaps: Mishap) -> Outcome:
        self.fleet.aws.clock.now += MINUTE
        return self.fleet.functions.invoke("attendant", SWEEP, mishaps)

    def beside(self) -> None:
        """Another invocation, meanwhile."""
        self.fleet.functions.invoke("attendant", SWEEP)

    @property
    def mails(self) -> list[tuple[str, str]]:
        return self.fleet.aws.topics.messages

    def owed(self) -> list[str]:
        return [one.job for one in State(TABLE).untold()]


@pytest.fixture
def watched() -> Iterator[Watched]:
    made = Watched()
    with made.fleet.functions.installed():
        yield made


def test_people_are_told_that_a_job_is_done_what_it_cost_and_where_to_look(watched: Watched) -> None:
    watched.ends(watched.admits())
    watched.sweep()
    ((head, text),) = watched.mails
    assert head == f"Trainyard {JOB.deployment}: job-1 is done"
    assert text.startswith("Job job-1 of ada is done, after 1 attempt.")
    assert "it has cost $" in text
    assert "of its max_cost_usd of $100" in text
    assert JOB.log_group in text
    assert ":execution:yard-train:job-1" in text
    assert watched.fleet.aws.topics.attributes == [{"event": "done", "job": "job-1", "owner": "ada"}]


def test_a_message_has_the_consoles_addresses_of_page_execution_log_and_artifacts(watched: Watched) -> None:
    execution = watched.admits()
    watched.ends(execution)
    watched.sweep()
    ((_, text),) = watched.mails
    lines = dict(line.split(": ", 1) for line in text.splitlines() if ": https://" in line)
    assert lines.keys() == {"Page", "Execution", "Log", "Artifacts in eu-central-1"}
    assert lines["Execution"].endswith(f"#/v2/executions/details/{execution.arn}")
    assert lines["Page"].endswith("prefix=jobs%2Fjob-1%2Freport.html")
    assert PLACE.bucket in lines["Artifacts in eu-central-1"]


def test_a_message_names_the_artifacts_of_each_region_in_which_the_job_ran(watched: Watched) -> None:
    execution = watched.admits(places={PLACE.region: PLACE, ABROAD.region: ABROAD})
    watched.launches(replace(JOB, id="job-1"), 2, ABROAD.region)
    watched.ends(execution, "FAILED", "NodeLost", "rank 1 is gone")
    watched.sweep()
    ((_, text),) = watched.mails
    assert "\nArtifacts in eu-central-1: https://" in text
    assert "\nArtifacts in eu-west-1: https://eu-west-1." in text


def test_a_message_about_a_job_that_was_not_admitted_has_the_address_of_its_execution(watched: Watched) -> None:
    execution = watched.admits(known=False)
    watched.ends(execution, "FAILED", "InvalidRequest", "nodes: 0")
    watched.sweep()
    ((_, text),) = watched.mails
    assert text.endswith(f"#/v2/executions/details/{execution.arn}")
    assert "Page: " not in text


def test_people_are_told_why_a_job_has_failed(watched: Watched) -> None:
    watched.ends(watched.admits(), "FAILED", "TrainingFailed", "rank 1: the command exited with code 1.")
    watched.sweep()
    ((head, text),) = watched.mails
    assert head == f"Trainyard {JOB.deployment}: job-1 has failed"
    assert "TrainingFailed: rank 1: the command exited with code 1." in text


@pytest.mark.parametrize(
    ("status", "error", "says"),
    [
        ("ABORTED", "", "its execution was stopped"),
        ("ABORTED", "by ada", "by ada: wrong data"),
        ("TIMED_OUT", "", "ran longer than its state machine allows"),
        ("FAILED", "States.Runtime", "States.Runtime: "),
    ],
)
def test_every_end_but_success_is_a_failure(watched: Watched, status: str, error: str, says: str) -> None:
    watched.ends(watched.admits("job-1", Event.FAILED), status, error, "wrong data")
    watched.sweep()
    ((_, text),) = watched.mails
    assert "has failed" in text
    assert says in text


def test_of_an_end_they_are_told_once_though_they_look_for_hours(watched: Watched) -> None:
    watched.ends(watched.admits())
    for _ in range(20):
        watched.sweep()
    assert len(watched.mails) == 1
    assert watched.owed() == []


@pytest.mark.parametrize("status", ["RUNNING", "PENDING_REDRIVE"])
def test_nobody_is_told_of_a_job_that_runs(watched: Watched, status: str) -> None:
    watched.admits().status = status
    watched.sweep()
    assert watched.mails == []
    assert watched.owed() == ["job-1"]


def test_nobody_is_told_of_a_job_that_the_list_does_not_show_yet(watched: Watched) -> None:
    watched.admits()
    watched.executions.lag_s = 1e6
    watched.sweep()
    assert watched.mails == []


@pytest.mark.parametrize(
    ("asked", "status"), [(Event.FAILED, "SUCCEEDED"), (Event.DONE, "FAILED"), (Event.DONE, "ABORTED")]
)
def test_nobody_is_told_of_the_end_that_was_not_asked_for(watched: Watched, asked: Event, status: str) -> None:
    watched.ends(watched.admits("job-1", asked), status)
    watched.sweep()
    assert watched.mails == []
    assert watched.owed() == []


@pytest.mark.parametrize("kind", [Kind.DENIED, Kind.ERROR, Kind.UNREACHABLE])
def test_a_message_that_cannot_be_sent_comes_later(watched: Watched, kind: Kind) -> None:
    watched.ends(watched.admits())
    assert watched.sweep(Mishap("sns:Publish", fault=kind, times=99)).error == ""
    assert watched.owed() == ["job-1"]
    watched.sweep()
    assert watched.mails == []  # whoever began may be at it
    for _ in range(int(SENDS_S / MINUTE) + 1):
        watched.sweep()
    assert len(watched.mails) == 1


@pytest.mark.parametrize("call", ["stepfunctions:DescribeExecution", "stepfunctions:ListExecutions", "dynamodb:Query"])
@pytest.mark.parametrize("kind", [Kind.DENIED, Kind.UNREACHABLE])
def test_nobody_is_told_what_is_not_known(watched: Watched, call: str, kind: Kind) -> None:
    watched.ends(watched.admits())
    watched.sweep(Mishap(call, fault=kind, times=99))
    assert watched.mails == []
    for _ in range(4):
        watched.sweep()
    assert len(watched.mails) == 1


@pytest.mark.parametrize("death", Death)
@pytest.mark.parametrize("nth", range(1, 12))
def test_whoever_dies_at_any_call_is_followed_by_another(watched: Watched, nth: int, death: Death) -> None:
    """Twice only where it died between the message and the note of it."""
    watched.ends(watched.admits())
    watched.sweep(Mishap("*", nth=nth, death=death))
    before = len(watched.mails)
    for _ in range(5):
        watched.sweep()
    assert len(watched.mails) in {1, before + 1}
    assert watched.owed() == []


def test_two_sweeps_at_once_tell_once(watched: Watched) -> None:
    watched.ends(watched.admits())
    second = Mishap("dynamodb:PutItem", meanwhile=watched.beside)
    watched.sweep(second)
    assert len(watched.mails) == 1


def test_two_that_follow_a_dead_one_at_once_tell_once(watched: Watched) -> None:
    watched.ends(watched.admits())
    watched.sweep(Mishap("sns:Publish", death=Death.BEFORE))
    watched.fleet.aws.clock.now += SENDS_S
    second = Mishap("dynamodb:PutItem", meanwhile=watched.beside)
    watched.sweep(second)
    assert len(watched.mails) == 1


def test_an_admission_that_comes_late_tells_nobody_a_second_time(watched: Watched) -> None:
    execution = watched.admits()
    watched.ends(execution)
    watched.sweep()
    State(TABLE).owe_end(replace(JOB, id="job-1", execution=execution.arn, notify=tuple(Event)))
    watched.sweep()
    assert len(watched.mails) == 1
    assert watched.owed() == []


def test_a_job_whose_admission_died_is_told_all_the_same(watched: Watched) -> None:
    watched.ends(watched.admits(known=False), "FAILED", "Lambda.Unknown", "The process ended.")
    watched.sweep()
    ((_, text),) = watched.mails
    assert "Lambda.Unknown: The process ended." in text
    assert "after 0 attempts" in text


def test_an_execution_that_step_functions_has_forgotten_is_told_as_not_known(watched: Watched) -> None:
    watched.admits()
    watched.executions.known.clear()
    watched.sweep()
    assert ["nothing says how it ended" in text for _, text in watched.mails] == [True]


def test_a_document_that_somebody_changed_keeps_nobody_from_being_told(watched: Watched) -> None:
    watched.ends(watched.admits())
    state.store(watched.fleet.aws, items.job("job-1"), b"{}")
    watched.sweep()
    assert len(watched.mails) == 1


def test_a_topic_that_answers_nobody_takes_no_longer_than_the_invocation(watched: Watched) -> None:
    for number in range(FAILURES + 20):
        watched.ends(watched.admits(f"job-{number}"))
    outcome = watched.sweep(Mishap("sns:Publish", fault=Kind.UNREACHABLE, times=999))
    assert outcome.error == ""
    for _ in range(6):
        watched.sweep()
    assert len(watched.mails) == FAILURES + 20


def test_each_of_many_is_told_once(watched: Watched) -> None:
    for number in range(30):
        watched.ends(watched.admits(f"job-{number}"), "FAILED" if number % 2 else "SUCCEEDED")
    watched.sweep()
    watched.sweep()
    assert len({head for head, _ in watched.mails}) == len(watched.mails) == 30


def test_what_code_of_a_job_said_is_shown_as_text_and_breaks_nothing(watched: Watched) -> None:
    watched.ends(watched.admits(), "FAILED", "TrainingFailed", "\x1b[2J\u202eevil\r\n\x00last words")
    watched.sweep()
    ((_, text),) = watched.mails
    assert "?[2J?evil?\n?last words" in text


# What has them told


def test_the_clock_has_them_told_and_no_event_is_needed(watched: Watched) -> None:
    watched.ends(watched.admits())
    told: list[dict[str, object]] = []
    watched.fleet.aws.later["attendant"] = told.append
    watched.fleet.functions.invoke("attendant", {"source": "aws.events"})
    watched.fleet.aws.clock.sleep(5.0)
    assert told == [SWEEP]


def test_while_every_such_job_trains_nobody_asks_for_executions() -> None:
    fleet = Fleet([1], now=NOW)
    with fleet.functions.installed():
        State(TABLE).owe_end(replace(fleet.jobs[0], notify=(Event.DONE,)))
        fleet.functions.invoke("attendant", {"source": "aws.events"})
        assert not [call for call in fleet.aws.calls if call.operation in {"Invoke", "ListExecutions"}]


@pytest.mark.parametrize("call", ["dynamodb:Query", "lambda:Invoke"])
def test_a_pass_that_cannot_have_them_told_looks_at_its_jobs_all_the_same(call: str) -> None:
    fleet = Fleet([1], now=NOW)
    with fleet.functions.installed():
        State(TABLE).owe_end(replace(fleet.jobs[0], id="another", notify=(Event.DONE,)))
        nth = 2 if call == "dynamodb:Query" else 1  # the first query is for the tokens
        mishap = Mishap(call, nth=nth, fault=Kind.DENIED)
        outcome = fleet.functions.invoke("attendant", {"source": "aws.events"}, [mishap])
        assert outcome.error == ""
        assert outcome.value == {"heartbeat": 1}


def test_what_is_owed_is_small(watched: Watched) -> None:
    """A pass reads it each minute, of every job."""
    watched.admits()
    document = state.stored(watched.fleet.aws, items.untold("job-1"))
    assert document is not None
    assert len(document) < 300
    assert set(json.loads(document)["events"]) >= {one.value for one in ENDS}
