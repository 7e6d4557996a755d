"""The starter's questions: people hear of what was refused or not built, once, and of nothing that tells of its end itself."""

from __future__ import annotations

import json

import pytest

from contract.campaigns import name_build
from messages.checks import Check
from starter.policy import MOST_CHECKS
from tests.fakes.executions import BUILD_MACHINE, MACHINE
from tests.fakes.faults import Death, Kind, Mishap
from tests.functions.starter.account import A_DAY_S, ENVIRONMENT, Campaigns, campaign, start_of

COMMIT = "0123456789ab" + "c" * 28
BUILD = name_build("digits", COMMIT)
REFUSED = "The request was refused; nothing was started.\n- manifest: there is nothing at s3://yard-home/x"


def arn(name: str, machine: str = BUILD_MACHINE) -> str:
    return f"{machine.replace(':stateMachine:', ':execution:')}:{name}"


def build(there: Campaigns, name: str = BUILD, status: str = "RUNNING", error: str = "", cause: str = "") -> None:
    """A build that the watch began, and its first question."""
    there.aws.states.executions.begin(name, BUILD_MACHINE)
    if status != "RUNNING":
        there.end(name, status, error, cause, BUILD_MACHINE)
    there.aws.queue.put(Check(execution=arn(name)).write(), ENVIRONMENT.check_s)


# Campaigns


def test_a_grid_that_was_refused_is_told_once_with_its_reasons_and_is_a_letter(there: Campaigns) -> None:
    version = there.upload()
    there.run()
    there.end(start_of(version), "FAILED", "InvalidRequest", REFUSED)
    there.run(2 * A_DAY_S)
    ((subject, said),) = there.aws.topics.messages
    assert subject == f"Trainyard yard: {start_of(version)} was refused or failed"
    assert said.startswith(f"campaign drive-eu: {start_of(version)} was refused.\n\n{REFUSED}\n\nhttps://")
    assert said.endswith(start_of(version))
    (letter,) = there.letters
    assert letter["check"]["execution"].endswith(start_of(version))
    assert there.aws.queue.messages == {}


def test_a_job_is_asked_for_as_a_grid_is(there: Campaigns) -> None:
    there.deploy({"drive-eu": campaign(code="{data}/code.tar.gz")})
    version = there.upload()
    there.run()
    there.end(start_of(version), "FAILED", "InvalidRequest", REFUSED, MACHINE)
    there.run(A_DAY_S)
    assert (len(there.mails), len(there.letters)) == (1, 1)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("SUCCEEDED", ""),
        ("FAILED", "TrainingFailed"),
        ("FAILED", "GridFailed"),
        ("FAILED", "SearchFailed"),
        ("ABORTED", ""),
        ("ABORTED", "InvalidRequest"),
    ],
)
def test_an_end_that_tells_of_itself_is_not_told_again(there: Campaigns, status: str, error: str) -> None:
    version = there.upload()
    there.run()
    there.end(start_of(version), status, error, "why")
    there.run(2 * A_DAY_S)
    assert (there.mails, there.letters, there.aws.queue.messages) == ([], [], {})


@pytest.mark.parametrize(
    ("status", "error"),
    [
        *(("FAILED", error) for error in ("DatabaseAway", "Sandbox.Timedout", "ClientError", "PatienceOver", "")),
        ("TIMED_OUT", ""),
    ],
)
def test_an_end_that_nothing_else_tells_of_is_told_once_and_is_a_letter(
    there: Campaigns, status: str, error: str
) -> None:
    version = there.upload()
    there.run()
    there.end(start_of(version), status, error, "the database is away")
    there.run(2 * A_DAY_S)
    assert (len(there.mails), len(there.letters)) == (1, 1)
    assert "the database is away" in str(there.mails[0])
    assert "A new upload of the object starts it again" in str(there.mails[0])


def test_one_that_runs_is_asked_for_every_quarter_of_an_hour_for_a_day_and_no_longer(there: Campaigns) -> None:
    there.upload()
    there.run(A_DAY_S - 1800)
    assert len(there.aws.queue.messages) == 1
    there.run(A_DAY_S)
    assert (there.mails, there.letters, there.aws.queue.messages) == ([], [], {})
    asked = sum(one.name == "stepfunctions:DescribeExecution" for one in there.aws.calls)
    assert asked == MOST_CHECKS + 1, "once more before the start"


def test_one_that_is_refused_after_hours_is_told_too(there: Campaigns) -> None:
    version = there.upload()
    there.run(5 * 3600)
    there.end(start_of(version), "FAILED", "InvalidRequest", REFUSED)
    there.run(A_DAY_S)
    assert len(there.mails) == 1


def test_one_that_waits_for_its_redrive_is_asked_for_again(there: Campaigns) -> None:
    version = there.upload()
    there.run()
    there.find(start_of(version)).status = "PENDING_REDRIVE"
    there.run(3600)
    assert len(there.aws.queue.messages) == 1


def test_a_question_about_an_execution_that_never_was_ends_at_once(there: Campaigns) -> None:
    there.aws.queue.put(Check(execution=arn("drive-eu-0123456789ab")).write())
    there.run(A_DAY_S)
    assert (there.mails, there.letters, there.aws.queue.messages) == ([], [], {})


def test_questions_are_answered_while_admission_is_closed(there: Campaigns) -> None:
    version = there.upload()
    there.run()
    there.end(start_of(version), "FAILED", "InvalidRequest", REFUSED)
    there.close()
    there.run(3600)
    assert len(there.mails) == 1


def test_a_question_of_a_campaign_that_the_settings_no_longer_have_is_dropped_unasked(there: Campaigns) -> None:
    """The function may not see such an execution any more, and would ask for a day and leave a letter."""
    there.upload()
    there.run()
    there.deploy({}, {})
    there.mishaps = [[Mishap("stepfunctions:*", times=1000, fault=Kind.DENIED)]] * 1000
    there.run(2 * A_DAY_S)
    assert (there.mails, there.letters, there.aws.queue.messages) == ([], [], {})


@pytest.mark.parametrize("name", ["x", "someone-elses", "other-0123456789ab", "drive-eu-0123456789AB", ""])
def test_a_question_about_an_execution_of_no_campaign_is_dropped_unasked(there: Campaigns, name: str) -> None:
    there.aws.queue.put(Check(execution=arn(name) if name else "x").write())
    there.run(3600)
    assert [one.name for one in there.aws.calls] == []
    assert (there.mails, there.letters, there.aws.queue.messages) == ([], [], {})


@pytest.mark.parametrize("death", Death)
@pytest.mark.parametrize("nth", range(1, 5))
def test_a_refusal_is_told_and_becomes_a_letter_whenever_the_function_is_killed(
    there: Campaigns, nth: int, death: Death
) -> None:
    """Told twice where it was killed between the message and its end; never not at all."""
    version = there.upload()
    there.run()
    there.end(start_of(version), "FAILED", "InvalidRequest", REFUSED)
    there.mishaps = [[Mishap("*", nth, death=death)]]
    there.run(A_DAY_S)
    assert 1 <= len(there.mails) <= 2
    assert 1 <= len(there.letters) <= 2
    assert there.aws.queue.messages == {}


@pytest.mark.parametrize("call", ["stepfunctions:DescribeExecution", "sns:Publish", "sqs:SendMessage"])
@pytest.mark.parametrize("fault", [Kind.THROTTLED, Kind.ERROR, Kind.UNREACHABLE])
def test_a_service_that_is_away_loses_no_question(there: Campaigns, call: str, fault: Kind) -> None:
    version = there.upload()
    there.run()
    there.end(start_of(version), "FAILED", "InvalidRequest", REFUSED)
    there.mishaps = [[Mishap(call, times=1000, fault=fault)]] * 3
    there.run(A_DAY_S)
    assert there.mails
    assert len(there.letters) == 1
    assert there.aws.queue.messages == {}


def test_what_a_request_said_reaches_people_without_what_a_terminal_obeys(there: Campaigns) -> None:
    version = there.upload()
    there.run()
    there.end(start_of(version), "FAILED", "InvalidRequest", "manifest: \x1b[2J\u202eevil")
    there.run(3600)
    (said,) = there.mails
    assert ("\x1b" in said, "\u202e" in said) == (False, False)


# Builds


@pytest.mark.parametrize(
    ("status", "error"),
    [("FAILED", "InvalidRequest"), ("FAILED", "BuildFailed"), ("FAILED", "HostAway"), ("TIMED_OUT", "")],
)
def test_a_build_that_did_not_end_well_is_told_once_and_is_a_letter(there: Campaigns, status: str, error: str) -> None:
    build(there, status=status, error=error, cause="context: has no Dockerfile at its root")
    there.run(2 * A_DAY_S)
    (said,) = there.mails
    assert said.startswith(
        f"watch digits: build {BUILD} ended with {error or status}.\n\ncontext: has no Dockerfile at its root\n\nhttps://"
    )
    assert len(there.letters) == 1


@pytest.mark.parametrize("status", ["SUCCEEDED", "ABORTED"])
def test_a_build_that_ended_well_or_that_a_person_ended_is_not_told(there: Campaigns, status: str) -> None:
    build(there, status=status)
    there.run(2 * A_DAY_S)
    assert (there.mails, there.letters, there.aws.queue.messages) == ([], [], {})


def test_a_build_that_waits_for_its_host_is_asked_for_until_it_gave_up(there: Campaigns) -> None:
    build(there)
    there.run(23 * 3600)
    there.end(BUILD, "FAILED", "HostAway", "https://git.example.com cannot be reached", BUILD_MACHINE)
    there.run(3600)
    assert len(there.mails) == 1


def test_a_question_says_how_often_it_was_asked(there: Campaigns) -> None:
    build(there)
    there.run(2 * ENVIRONMENT.check_s + 60)
    (message,) = there.aws.queue.messages.values()
    assert json.loads(message.body)["check"] == {"execution": arn(BUILD), "number": 3}
