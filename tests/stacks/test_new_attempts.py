"""What Decide makes of a problem, and what an attempt leaves to the next one: the machine's expressions, evaluated."""

from __future__ import annotations

import time
from typing import Any

import pytest

from contract import errors
from contract.timing import Timing
from localaws.services.jsonata import QueryFailed, evaluate
from stacks.parts import jsonata

FAR, PAST = 99_999_999_999, 1
MENDABLE = {error.__name__ for error in errors.NEW_ATTEMPT}
BEGUN: dict[str, Any] = {
    "attempt": 1, "lost": 0, "recoveries": 3, "retries": 0, "events": 0, "young": 0, "step": -1, "deadline": FAR, "launched_at": 0,
    "rungs": [],
}  # fmt: skip
"""Variables of an execution whose first attempt has a problem."""


def value(expression: str, **variables: Any) -> Any:
    """As the local Step Functions evaluates it: an expression without a value fails, as in AWS."""
    return evaluate(expression.removeprefix("{%").removesuffix("%}").strip(), BEGUN | variables)


def caught(error: str) -> dict[str, Any]:
    found: dict[str, Any] = value(jsonata.PROBLEM, states={"errorOutput": {"Error": error, "Cause": "why"}})
    return found


def decided(error: str, **variables: Any) -> str:
    """What the rules of Decide say, in their order: `recovers`, `retries`, `spent` or `failed`."""
    rules = {
        "recovers": jsonata.again(errors.NEW_ATTEMPT),
        "retries": jsonata.RETRIED,
        "spent": jsonata.spent(errors.NEW_ATTEMPT),
    }
    problem = caught(error)
    return next((name for name, rule in rules.items() if value(rule, problem=problem, **variables) is True), "failed")


def test_the_rules_of_decide_are_these_in_this_order(machine: dict[str, Any]) -> None:
    decide = machine["States"]["Decide"]
    assert [(rule["Condition"], rule["Next"]) for rule in decide["Choices"]] == [
        (jsonata.NO_PROBLEM, "Done"),
        (jsonata.again(errors.NEW_ATTEMPT), "Pause"),
        (jsonata.RETRIED, "Pause"),
        (jsonata.spent(errors.NEW_ATTEMPT), "Failed"),
    ]
    assert decide["Default"] == "Failed"
    assert machine["States"]["Pause"]["Next"] == "Launch"


@pytest.mark.parametrize("error", sorted(MENDABLE))
def test_what_interrupts_nodes_starts_a_new_attempt(error: str) -> None:
    assert decided(error) == "recovers"


@pytest.mark.parametrize("error", sorted({*errors.BY_NAME, "States.Timeout", "nonsense"} - MENDABLE - {"RetriedExit"}))
def test_nothing_else_starts_a_new_attempt_even_where_the_request_allows_retries(error: str) -> None:
    assert decided(error, retries=5) == "failed"


@pytest.mark.parametrize("attempt", [1, 4, 40, 499])
def test_recoveries_are_counted_in_a_row_and_attempts_are_not(attempt: int) -> None:
    assert decided("NodeLost", attempt=attempt, lost=2) == "recovers"
    assert decided("NodeLost", attempt=attempt, lost=3) == "spent"


@pytest.mark.parametrize("error", ["NodeLost", "Interrupted"])
def test_no_attempt_starts_where_no_recovery_is_allowed(error: str) -> None:
    assert decided(error, recoveries=0) == "spent"


@pytest.mark.parametrize("lost", [0, 2, 3, 50])
def test_a_job_that_aws_interrupts_does_not_run_out_of_recoveries(lost: int) -> None:
    assert decided("Interrupted", lost=lost) == "recovers"


@pytest.mark.parametrize("error", ["NodeLost", "Stalled", "NodeUnhealthy"])
def test_other_losses_do(error: str) -> None:
    assert decided(error, lost=3) == "spent"


def test_an_interruption_takes_no_recovery() -> None:
    assert value(jsonata.LOST, lost=2, problem={"error": "Interrupted"}) == 2
    assert value(jsonata.LOST, lost=2, problem={"error": "NodeLost"}) == 3


@pytest.mark.parametrize("error", ["NodeLost", "RetriedExit"])
def test_no_attempt_starts_after_the_deadline_and_nobody_speaks_of_what_is_left(error: str) -> None:
    assert decided(error, retries=5, deadline=PAST) == "failed"


@pytest.mark.parametrize("error", ["NodeLost", "RetriedExit"])
def test_no_attempt_starts_that_might_fill_the_history(error: str) -> None:
    assert decided(error, retries=5, attempt=jsonata.MOST_ATTEMPTS) == "spent"
    assert decided(error, retries=5, events=jsonata.MOST_EVENTS - jsonata.LAST_EVENTS) == "spent"


def test_a_loss_takes_no_retry_and_a_retry_no_recovery(machine: dict[str, Any]) -> None:
    recovery, retry = machine["States"]["Decide"]["Choices"][1:3]
    both = {"attempt": 1, "lost": 1, "retries": 2, "young": 0, "deadline": FAR}
    new = [
        {name: value(text, **both) for name, text in rule["Assign"].items() if name != "problem"}
        for rule in (recovery, retry)
    ]
    assert new == [{"attempt": 2, "lost": 2, "pause": 0}, {"attempt": 2, "retries": 1, "pause": 0}]
    assert [rule["Assign"]["problem"] for rule in (recovery, retry)] == ["{% null %}"] * 2
    assert decided("NodeLost", lost=3, retries=5) == "spent"
    assert decided("RetriedExit", lost=3, retries=1) == "retries"
    assert decided("RetriedExit", lost=0, retries=0) == "spent"


def test_a_retried_exit_is_called_by_its_own_name_only_on_the_way_to_the_machine() -> None:
    assert caught("RetriedExit") == {"error": "TrainingFailed", "cause": "why", "retried": True}
    assert caught("TrainingFailed") == {"error": "TrainingFailed", "cause": "why", "retried": False}


@pytest.mark.parametrize(
    ("error", "variables", "why"),
    [
        ("NodeLost", {"lost": 3}, "No recovery is left: 3 in a row committed no newer checkpoint"),
        ("NodeLost", {"recoveries": 0}, "No recovery is allowed (limits.recoveries"),
        ("RetriedExit", {}, "No retry is left (retries.times"),
        ("NodeLost", {"attempt": 500}, "No new attempt: one execution has room for 500 of them"),
        ("RetriedExit", {"events": 20_000, "retries": 5}, "or for 25000 events in its history"),
    ],
)
def test_the_last_problem_says_why_it_was_the_last_one(error: str, variables: dict[str, Any], why: str) -> None:
    problem = caught(error)
    told = value(jsonata.UNMENDED, problem=problem, **variables)
    assert told["error"] == problem["error"]
    assert told["cause"].startswith("why\nNo ")
    assert why in told["cause"]
    assert "retried" not in told


def test_a_cause_of_any_length_leaves_room_for_why_it_was_the_last_one() -> None:
    told = value(jsonata.UNMENDED, problem={"error": "NodeLost", "cause": "x" * 32_768}, lost=3)
    assert told["cause"].endswith("(limits.recoveries in cdk.json).")
    assert len(told["cause"]) < jsonata.CAUSE


def left(answer: dict[str, Any], **variables: Any) -> dict[str, Any]:
    """Variables after Terminate has answered."""
    assigned = {**jsonata.FURTHER, "young": jsonata.young(900.0)}
    found = {"result": {"Payload": answer}}
    return {name: value(text, states=found, **variables) for name, text in assigned.items()}


def test_a_newer_checkpoint_begins_the_row_anew() -> None:
    now = int(time.time())
    before = {"lost": 2, "young": 2, "step": 10, "launched_at": now - 60}
    assert left({"terminated": [], "progressed": True, "step": 20}, **before) == {"step": 20, "lost": 0, "young": 0}
    assert left({"terminated": [], "progressed": False, "step": 10}, **before) == {"step": 10, "lost": 2, "young": 3}


@pytest.mark.parametrize("answer", [{"terminated": []}, {"terminated": [], "progressed": "true", "step": 3}, {}])
def test_an_answer_that_says_nothing_of_a_checkpoint_begins_no_row_anew(answer: dict[str, Any]) -> None:
    told = left(answer, lost=2, step=2)
    assert (told["lost"], told["step"]) == (2, answer.get("step", 2))


def test_an_attempt_that_lived_long_did_not_die_young() -> None:
    now = int(time.time())
    assert left({"progressed": False}, young=4, launched_at=now - 901)["young"] == 0
    assert left({"progressed": False}, young=4, launched_at=now)["young"] == 5


def pause(young: int, left_s: float = 1e6) -> Any:
    return value(jsonata.pause(30.0, 900.0), young=young, deadline=int(time.time() + left_s))


def test_pauses_double_up_to_the_longest_one_and_there_is_none_after_an_attempt_that_lived() -> None:
    assert [pause(young) for young in range(8)] == [0, 30, 60, 120, 240, 480, 900, 900]
    assert pause(100_000) == 900


def test_a_pause_leaves_half_of_the_jobs_time_and_never_passes_the_deadline() -> None:
    began = time.time()
    told = pause(6, 600)
    assert 298 - (time.time() - began) / 2 <= told <= 300
    assert pause(6, 1) == 0
    assert pause(6, -50) == 0


def test_a_pause_is_whole_seconds_whatever_the_settings_say() -> None:
    told = value(jsonata.pause(0.25, 0.7), young=3)
    assert (told, type(told)) == (0, int)
    assert isinstance(value(jsonata.pause(2.5, 90.0), young=2), int)


def spent(retries: object, events: int = 0) -> Any:
    state = {} if retries is None else {"RetryCount": retries}
    return value(jsonata.SPENT, events=events, states={"context": {"State": state}})


def test_events_are_counted_at_four_a_try_and_a_context_without_retries_breaks_nothing() -> None:
    assert [spent(0), spent(3), spent(None), spent(1, 100)] == [8, 20, 8, 112]


def test_every_try_of_an_attempt_is_counted(machine: dict[str, Any]) -> None:
    for name in ("Launch", "Wait for capacity", "Train", "Terminate"):
        assert machine["States"][name]["Assign"]["events"] == jsonata.SPENT
    for name in ("Launch", "Train", "Sync"):
        assert [one["Assign"].get("events") for one in machine["States"][name]["Catch"]] == [jsonata.SPENT] * len(
            machine["States"][name]["Catch"]
        )


def test_an_expression_without_a_value_fails_here_as_in_aws() -> None:
    """A measure that measures: the expressions above would fail so."""
    with pytest.raises(QueryFailed):
        value("{% $nothing + 1 %}")


def test_the_settings_reach_the_machine(machine: dict[str, Any]) -> None:
    timing = Timing()
    assert machine["States"]["Decide"]["Choices"][1]["Assign"]["pause"] == jsonata.pause(
        timing.recovery_pause_s, timing.recovery_longest_s
    )
    assert machine["States"]["Terminate"]["Assign"]["young"] == jsonata.young(timing.recovery_longest_s)
