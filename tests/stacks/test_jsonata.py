"""The machine's expressions, evaluated: whatever an error looks like, a person reads a cause, and Terminate runs."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from jsonata import Jsonata

from contract import errors
from contract.links import SHOWN_REGIONS
from job_checks.ladder import MOST_RUNGS
from stacks.parts import jsonata
from tests.builders import LINKS_AT_MOST

FAR = 99_999_999_999
PAST = 1


def value(expression: str, **variables: Any) -> Any:
    parsed = Jsonata(expression.removeprefix("{%").removesuffix("%}").strip())
    frame = parsed.create_frame()
    for name, bound in variables.items():
        frame.bind(name, bound)
    return parsed.evaluate(None, frame)


def problem(error: object = None, cause: object = None, *, deadline: int = FAR, late: str = "DeadlineReached") -> Any:
    output = {key: given for key, given in (("Error", error), ("Cause", cause)) if given is not None}
    told = value(jsonata.PROBLEM, states={"errorOutput": output}, deadline=deadline, late_error=late)
    assert told.pop("retried") is False
    return told


def raised(message: str, *, ascii_only: bool = False) -> str:
    """What Lambda makes of a Python exception."""
    error = {"errorMessage": message, "errorType": "CapacityUnavailable", "stackTrace": ['  File "a.py"\n']}
    return json.dumps(error, ensure_ascii=ascii_only)


@pytest.mark.parametrize(
    "message",
    [
        "no capacity",
        "a\nb",
        'type "g5.48xlarge"',
        "C:\\folder — ünïcode",
        "{% $x %}",
        "$1 and $$.",
        "'single'",
        "a/b]c[d",
    ],
)
def test_a_person_reads_the_message_and_not_lambdas_json(message: str) -> None:
    assert problem("CapacityUnavailable", raised(message)) == {"error": "CapacityUnavailable", "cause": message}


@pytest.mark.parametrize(
    "cause",
    [
        "plain words",
        "{",
        '{"errorMessage": "cut o',
        '{"errorType": "X"}',
        "[]",
        "null",
        '"',
        "\\",
        "{% %}",
        "x" * 32_768,
    ],
)
def test_a_cause_that_is_not_lambdas_is_shown_as_it_is(cause: str) -> None:
    assert problem("NodeLost", cause) == {"error": "NodeLost", "cause": cause}


@pytest.mark.parametrize("cause", [None, "", raised("")])
def test_a_missing_cause_breaks_nothing(cause: str | None) -> None:
    assert problem("NodeLost", cause)["cause"].startswith("No reason was given")


@pytest.mark.parametrize("error", [None, "", 7])
def test_an_error_without_a_name_breaks_nothing(error: object) -> None:
    assert isinstance(problem(error, "why")["error"], str)


def test_a_message_cut_off_at_32_kib_breaks_nothing() -> None:
    cut = raised("line\n" * 10_000)[:32_768]
    assert problem("TrainingFailed", cut)["error"] == "TrainingFailed"


def test_a_time_out_after_the_deadline_is_the_deadline() -> None:
    assert problem("States.Timeout", deadline=PAST)["error"] == errors.DeadlineReached.__name__


def test_a_time_out_after_the_money_is_used_up_is_the_budget() -> None:
    assert problem("States.Timeout", deadline=PAST, late="BudgetExceeded")["error"] == errors.BudgetExceeded.__name__


def test_a_time_out_before_the_deadline_is_not_called_the_deadline() -> None:
    assert problem("States.Timeout")["error"] == "States.Timeout"


def test_another_error_after_the_deadline_keeps_its_name() -> None:
    assert problem("NodeLost", "gone", deadline=PAST)["error"] == "NodeLost"


def test_a_refusal_needs_no_variable_of_the_machine() -> None:
    output = {"Error": "InvalidRequest", "Cause": raised("nodes: 0; allowed: 1 to 16")}
    told = value(jsonata.REFUSED, states={"errorOutput": output})
    assert told == {"error": "InvalidRequest", "cause": "nodes: 0; allowed: 1 to 16"}


def test_a_failing_terminate_keeps_the_error_that_came_before() -> None:
    output = {"Error": "StillRunning", "Cause": raised("2 instances")}
    told = value(
        jsonata.LEFT_RUNNING, states={"errorOutput": output}, problem={"error": "NodeLost", "cause": "rank 1 is gone."}
    )
    assert told["error"] == "NodeLost"
    assert told["cause"].startswith("rank 1 is gone. Instances may still run")
    assert told["cause"].endswith("2 instances")


def test_a_failing_terminate_of_a_job_that_went_well_is_an_error_of_its_own() -> None:
    output = {"Error": "StillRunning", "Cause": "2 instances"}
    told = value(jsonata.LEFT_RUNNING, states={"errorOutput": output}, problem=None)
    assert told["error"] == "StillRunning"
    assert told["cause"].startswith("Instances may still run")


def test_a_job_without_a_problem_is_done() -> None:
    assert value(jsonata.NO_PROBLEM, problem=None) is True


def test_a_job_with_a_problem_is_not_done() -> None:
    assert value(jsonata.NO_PROBLEM, problem={"error": "NodeLost", "cause": ""}) is False


def again(error: str, *, request: object = None) -> Any:
    states = {"context": {"Execution": {"Input": {} if request is None else request}}}
    counted = {"lost": 0, "recoveries": 1, "attempt": 1, "events": 0, "deadline": FAR}
    return value(jsonata.again(errors.NEW_ATTEMPT), problem={"error": error, "cause": ""}, states=states, **counted)


def test_a_stalled_job_that_asks_to_be_stopped_starts_no_new_attempt() -> None:
    assert again("Stalled", request={"stall": {"minutes": 30, "then": "stop"}}) is False


@pytest.mark.parametrize("error", ["NodeLost", "Interrupted"])
def test_what_else_befalls_a_job_that_asks_to_be_stopped_when_stalled_starts_one(error: str) -> None:
    assert again(error, request={"stall": {"minutes": 30, "then": "stop"}}) is True


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"stall": {"minutes": 30, "then": "restart"}},
        {"stall": {"minutes": 30, "then": "notify"}},
        {"stall": None},
        [],
        "text",
    ],
    ids=str,
)
def test_a_stalled_job_that_does_not_ask_for_it_starts_one(request_: object) -> None:
    assert again("Stalled", request=request_) is True


def test_train_may_take_until_the_nodes_timers_have_ended_them() -> None:
    began = time.time()
    left = value(jsonata.seconds_left(299.5, least=301), deadline=int(began) + 3600)
    assert 3898 - (time.time() - began) <= left <= 3901
    assert left == int(left)


def test_train_never_times_out_before_a_heartbeat_can_be_lost() -> None:
    assert value(jsonata.seconds_left(300, least=301), deadline=PAST) == 301


LINKS = {"page": "https://p", "execution": "https://e", "log": "https://l", "report": "https://r"}
LAUNCHED_IN = "us-east-2"
LAUNCHED = {**LINKS, "artifacts": "https://there", "artifacts_by_region": {LAUNCHED_IN: "https://there"}}
WHERE = "Page: https://p\nExecution: https://e\nLog: https://l\nReport: https://r"


def test_artifacts_are_looked_for_where_attempts_were_launched(machine: dict[str, Any]) -> None:
    for state, place in (("Launch", {"Payload": None}), ("Wait for capacity", {})):
        said = machine["States"][state]["Assign"]["links"]

        def answer(payload: dict[str, str], place: dict[str, Any] = place) -> dict[str, Any]:
            return {"result": {"Payload": payload} if place else payload}

        first = value(said, links=LINKS, states=answer({"region": LAUNCHED_IN, "artifacts": "https://there"}))
        assert first == LAUNCHED
        again = value(said, links=first, states=answer({"region": LAUNCHED_IN, "artifacts": "https://there"}))
        assert again == LAUNCHED
        second = value(said, links=first, states=answer({"region": "eu-west-1", "artifacts": "https://here"}))
        assert second == {
            **LINKS,
            "artifacts": "https://here",
            "artifacts_by_region": {LAUNCHED_IN: "https://there", "eu-west-1": "https://here"},
        }
        older = answer({"region": LAUNCHED_IN})  # of a launcher that was deployed before
        assert value(said, links=LINKS, states=older) == LINKS


def test_a_failure_says_its_cause_first_and_then_where_to_look() -> None:
    told = value(jsonata.TOLD, problem={"error": "NodeLost", "cause": "rank 1 is gone"}, links=LINKS)
    assert told == f"rank 1 is gone\n\n{WHERE}"


def test_a_failure_names_the_artifacts_of_each_region_in_which_the_job_ran() -> None:
    problem = {"error": "NodeLost", "cause": "rank 1 is gone"}
    told = value(jsonata.TOLD, problem=problem, links=LAUNCHED)
    assert told == f"rank 1 is gone\n\n{WHERE}\nArtifacts in us-east-2: https://there"
    both = LAUNCHED | {"artifacts_by_region": {LAUNCHED_IN: "https://there", "eu-west-1": "https://here"}}
    told = value(jsonata.TOLD, problem=problem, links=both)
    assert told.endswith("\nArtifacts in us-east-2: https://there\nArtifacts in eu-west-1: https://here")


def test_of_many_regions_a_cause_names_a_few() -> None:
    many = LAUNCHED | {"artifacts_by_region": {f"region-{number}": "https://x" for number in range(20)}}
    told = value(jsonata.TOLD, problem={"error": "NodeLost", "cause": "rank 1 is gone"}, links=many)
    assert told.count("Artifacts in ") == SHOWN_REGIONS


def test_a_refusal_has_nowhere_to_look() -> None:
    assert value(jsonata.TOLD, problem={"error": "InvalidRequest", "cause": "nodes: 0"}, links=None) == "nodes: 0"


@pytest.mark.parametrize("cause", ["x" * 32_768, "ü" * 40_000, "x" * (jsonata.CAUSE + 1)])
def test_a_long_cause_leaves_room_for_where_to_look(cause: str) -> None:
    each = "https://" + "l" * (LINKS_AT_MOST // (4 + SHOWN_REGIONS))
    most: dict[str, Any] = dict.fromkeys(LINKS, each)
    most["artifacts_by_region"] = {f"region-{number}": each for number in range(SHOWN_REGIONS)}
    told = value(jsonata.TOLD, problem={"error": "TrainingFailed", "cause": cause}, links=most)
    assert len(told) < 32_768
    assert told.startswith(cause[: jsonata.CAUSE] + " ...\n\nPage: https://")
    assert told.endswith(each)


def test_a_cause_that_fits_is_whole() -> None:
    told = value(jsonata.TOLD, problem={"error": "TrainingFailed", "cause": "x" * jsonata.CAUSE}, links=LINKS)
    assert told.startswith("x" * jsonata.CAUSE + "\n\n")


def waited(error: object = None, cause: object = None) -> Any:
    output = {key: given for key, given in (("Error", error), ("Cause", cause)) if given is not None}
    return value(jsonata.WAITED, states={"errorOutput": output}, deadline=PAST)


def test_a_wait_whose_state_times_out_ends_for_want_of_capacity_and_not_because_the_hours_are_over() -> None:
    told = waited("States.Timeout")
    assert (told["error"], told["cause"]) == (errors.CapacityUnavailable.__name__, jsonata.WAITED_CAUSE)


@pytest.mark.parametrize("error", ["QuotaExceeded", "InvalidRequest", "CapacityUnavailable"])
def test_another_end_of_a_wait_keeps_its_name_and_its_cause(error: str) -> None:
    assert waited(error, raised("told")) == {"error": error, "cause": "told"}


@pytest.mark.parametrize("error", [None, "", 7])
def test_a_wait_that_ends_without_a_name_breaks_nothing(error: object) -> None:
    assert isinstance(waited(error)["error"], str)


def test_a_wait_has_the_time_that_is_left_and_never_less_than_a_try_takes() -> None:
    began = time.time()
    left = value(jsonata.wait_left(780, least=330), waits_until=int(began) + 1000)
    assert 1778 - (time.time() - began) <= left <= 1780
    assert value(jsonata.wait_left(780, least=330), waits_until=PAST) == 330
    began = time.time()
    assert -1 <= value(jsonata.WAIT_BEGINS, wait_left_s=3600) - began - 3600 <= time.time() - began + 1


def test_the_rungs_of_a_hundred_recoveries_fit_into_a_variable() -> None:
    one = {"region": "ap-southeast-1", "zone": "ap-southeast-1a", "instance_type": "u7in-24tb.224xlarge"}
    one |= {"market": "interruptible-capacity-reservation", "answer": f"NotAsked: {'j' * 80} found it empty"}
    rungs: Any = []
    for attempt in range(5):
        walked = [one | {"attempt": attempt} for _ in range(MOST_RUNGS)]
        rungs = value(jsonata.with_rungs("$r"), rungs=rungs, r={"rungs": walked})
    assert len(json.dumps(rungs)) < 256 * 1024
    assert rungs[-1]["attempt"] == 4


@pytest.mark.parametrize("attempts", [0, 1, 2])
def test_few_rungs_are_all_shown_as_a_list(attempts: int) -> None:
    before = [{"zone": str(number)} for number in range(attempts)]
    shown = value(jsonata.with_rungs("$r"), rungs=before, r={"rungs": [{"zone": "a"}]})
    assert shown == [*before, {"zone": "a"}]
