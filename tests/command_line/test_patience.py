"""Following outlasts an AWS that does not answer for minutes; where it ends before the job does, it says what goes on."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from itertools import pairwise

import pytest
from botocore import exceptions as aws
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError

from tests.command_line.account import YARD, Account, History, run
from tests.fakes.executions import GRID_MACHINE
from trainyard import patience
from trainyard.patience import GIVE_UP_S, LONGEST_PAUSE_S, PatientReader, Timekeeper, keep_following
from trainyard.printer import Printer
from trainyard.stops import CannotProceed


def answer(code: str, status: int = 400) -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        "DescribeExecution",
    )


PASSING = [
    answer("ThrottlingException"),
    answer("Strange", 503),
    answer("ExpiredTokenException"),
    answer("UnrecognizedClientException"),
    aws.EndpointConnectionError(endpoint_url="https://x"),
    aws.ReadTimeoutError(endpoint_url="https://x"),
    aws.ConnectionClosedError(endpoint_url="https://x"),
    aws.IncompleteReadError(actual_bytes=1, expected_bytes=2),
    ResponseParserError("no XML"),
    aws.UnauthorizedSSOTokenError(),
    aws.TokenRetrievalError(provider="sso", error_msg="x"),
    aws.NoCredentialsError(),
]
LASTING = [
    answer("AccessDeniedException"),
    answer("InvalidArn"),
    aws.NoRegionError(),
    KeyError("x"),
    CannotProceed("x"),
]


def name(problem: Exception) -> str:
    return str(problem) if isinstance(problem, ClientError) else type(problem).__name__


@pytest.fixture(autouse=True)
def renewals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How often credentials were read again."""
    found = list[str]()
    monkeypatch.setattr(patience, "renew_session", lambda: found.append("again"))
    return found


class Waiting:
    """PatientReader whose pauses are noted, and a call that fails with these errors before it answers."""

    def __init__(self, *problems: Exception) -> None:
        self.ahead, self.pauses, self.lines = list(problems), list[float](), list[str]()

    def fail(self) -> str:
        if self.ahead:
            raise self.ahead.pop(0)
        return "answer"

    def read(self, find: Callable[[], str]) -> str:
        return PatientReader(self.lines.append, Timekeeper(sleep=self.pauses.append)).read(find)


@pytest.mark.parametrize("problem", PASSING, ids=name)
def test_an_error_that_may_pass_is_waited_for_with_growing_pauses(problem: Exception) -> None:
    waiting = Waiting(*[problem] * 6)
    assert waiting.read(waiting.fail) == "answer"
    assert waiting.pauses == [2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert len(waiting.lines) == 2
    assert waiting.lines[0].endswith("\nfollowing waits for up to 15 min")
    assert waiting.lines[1] == "AWS answers again"


@pytest.mark.parametrize("problem", LASTING, ids=name)
def test_an_error_that_lasts_is_not_waited_for(problem: Exception) -> None:
    waiting = Waiting(problem)
    with pytest.raises(type(problem)):
        waiting.read(waiting.fail)
    assert (waiting.pauses, waiting.lines) == ([], [])


def test_an_answer_at_once_says_nothing() -> None:
    waiting = Waiting()
    assert (waiting.read(waiting.fail), waiting.lines) == ("answer", [])


def test_each_reason_is_said_once() -> None:
    throttled, cut = answer("ThrottlingException"), aws.EndpointConnectionError(endpoint_url="https://x")
    waiting = Waiting(throttled, throttled, cut, cut, throttled)
    waiting.read(waiting.fail)
    assert [line.partition(" ")[0] for line in waiting.lines] == ["AWS", "network:", "AWS", "AWS"]


def test_patience_ends_after_minutes_of_pauses() -> None:
    waiting = Waiting(*[answer("ThrottlingException")] * 1000)
    with pytest.raises(ClientError):
        waiting.read(waiting.fail)
    assert GIVE_UP_S <= sum(waiting.pauses) < GIVE_UP_S + LONGEST_PAUSE_S
    assert all(first <= second <= LONGEST_PAUSE_S for first, second in pairwise(waiting.pauses))


def test_credentials_are_read_again_where_they_were_the_reason(renewals: list[str]) -> None:
    waiting = Waiting(answer("ThrottlingException"), answer("ExpiredTokenException"), aws.NoCredentialsError())
    waiting.read(waiting.fail)
    assert renewals == ["again", "again"]


def keep(follow: Callable[[], int], kind: str = "job") -> tuple[int, str]:
    out = io.StringIO()
    return keep_following(kind, "digits", Printer(as_json=False, out=out, err=out), follow), out.getvalue()


def test_following_that_ends_well_has_its_own_code() -> None:
    assert keep(lambda: 1) == (1, "")


@pytest.mark.parametrize(
    "problem", [*PASSING, answer("AccessDeniedException"), KeyboardInterrupt(), KeyError("x")], ids=repr
)
@pytest.mark.parametrize(("kind", "command"), [("job", "status"), ("grid", "grid status"), ("search", "search status")])
def test_whatever_ends_following_says_what_goes_on(
    problem: BaseException, kind: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> int:
        raise problem

    monkeypatch.delenv("TRAINYARD_DEBUG", raising=False)
    code, lines = keep(fail, kind)
    assert code == 130
    assert lines.splitlines()[-1] == (
        f"digits goes on; to follow it again: trainyard {command} digits -f; to stop it: trainyard stop digits"
    )


def test_an_interrupt_leaves_a_last_document_with_what_goes_on() -> None:
    def interrupt() -> int:
        raise KeyboardInterrupt

    out, err = io.StringIO(), io.StringIO()
    assert keep_following("grid", "sweep", Printer(as_json=True, out=out, err=err), interrupt) == 130
    words = "sweep goes on; to follow it again: trainyard grid status sweep -f; to stop it: trainyard stop sweep"
    assert json.loads(out.getvalue()) == {"error": "KeyboardInterrupt", "cause": words}
    assert err.getvalue() == f"{words}\n"


def test_what_cannot_be_followed_at_all_is_not_said_to_go_on() -> None:
    def fail() -> int:
        raise CannotProceed("digits: Step Functions no longer has the execution.")

    with pytest.raises(CannotProceed):
        keep(fail)


@pytest.mark.parametrize(
    ("command", "call"),
    [
        (["status", "digits", "-f"], "stepfunctions:GetExecutionHistory"),
        (["logs", "digits", "-f"], "logs:FilterLogEvents"),
        (["grid", "status", "sweep", "-f"], "stepfunctions:GetExecutionHistory"),
    ],
    ids=str,
)
def test_every_command_that_follows_says_what_goes_on_where_aws_denies_it(
    there: Account, command: list[str], call: str
) -> None:
    there.begin(history=History().admit())
    there.begin("sweep", GRID_MACHINE, History().enter("Plan"))
    there.denied = {call}
    ran = run(*command, *YARD)
    assert ran.code == 130
    assert ran.err.startswith("rights: AWS denies you ")
    assert "goes on; to follow it again: trainyard " in ran.out
