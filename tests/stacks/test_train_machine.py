"""The Train machine, read as a graph: nothing leaves it but through Terminate."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from contract import errors
from contract.timing import Timing
from tests.properties.retrying import LAMBDAS_OWN, THROTTLED
from tests.stacks.synth import resources
from tools.diagrams import transitions
from tools.synthesis import Synthesised

Machine = dict[str, Any]
WAIT = "Wait for capacity"
WORKING = {"Launch", WAIT, "Train", "Sync"}
LONGEST_S = (72 + 336) * 3600
"""The hours of the longest job, and those that it may wait."""
LONGEST_LAMBDA_S = 900


def tasks(machine: Machine) -> dict[str, dict[str, Any]]:
    return {name: state for name, state in machine["States"].items() if state["Type"] == "Task"}


def retries(state: dict[str, Any], error: str) -> list[dict[str, Any]]:
    return [retry for retry in state["Retry"] if error in retry["ErrorEquals"]]


def paths(machine: Machine, start: str, *, so_far: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every way from a state to an end, each state at most twice."""
    here = (*so_far, start)
    following = [target for target, _ in transitions(machine["States"][start]) if here.count(target) < 2]
    if not following:
        yield here
    for target in dict.fromkeys(following):
        yield from paths(machine, target, so_far=here)


def test_every_working_step_falls_into_terminate(machine: Machine) -> None:
    unguarded = [
        name
        for name in WORKING
        if [(catch["ErrorEquals"], catch["Next"]) for catch in machine["States"][name].get("Catch", [])][-1:]
        != [(["States.ALL"], "Terminate")]
    ]
    assert unguarded == []


def test_every_path_after_a_launch_passes_through_terminate(machine: Machine) -> None:
    around = [path for path in paths(machine, "Launch") if "Terminate" not in path]
    assert around == []


def test_no_path_ends_after_a_launch_that_no_terminate_follows(machine: Machine) -> None:
    def last(path: tuple[str, ...], name: str) -> int:
        return max(index for index, state in enumerate(path) if state == name)

    left = [path for path in paths(machine, "Launch") if last(path, "Terminate") < last(path, "Launch")]
    assert left == []


def test_admit_fails_without_touching_what_does_not_exist(machine: Machine) -> None:
    assert [catch["Next"] for catch in machine["States"]["Admit"]["Catch"]] == ["Failed"]


def test_a_failing_terminate_fails_the_job(machine: Machine) -> None:
    assert [catch["Next"] for catch in machine["States"]["Terminate"]["Catch"]] == ["Failed"]


def test_no_state_gives_up_before_its_function(machine: Machine, deployment: Synthesised) -> None:
    functions = resources(deployment.template("workflow"), "AWS::Lambda::Function")
    for name, state in tasks(machine).items():
        logical_id = state["Arguments"]["FunctionName"].strip("<>").removesuffix(".Arn")
        timeout = functions[logical_id]["Timeout"]
        assert timeout <= LONGEST_LAMBDA_S
        if isinstance(state["TimeoutSeconds"], int):
            assert state["TimeoutSeconds"] > timeout, name


def test_every_task_outlives_a_throttled_lambda_and_a_killed_one(machine: Machine) -> None:
    for error in ("Lambda.TooManyRequestsException", "Lambda.ServiceException", "Lambda.Unknown", "Runtime.ExitError"):
        asked = {name: retries(state, error) or retries(state, "States.ALL") for name, state in tasks(machine).items()}
        assert [name for name, found in asked.items() if len(found) != 1] == []


def used(state: dict[str, Any], error: str) -> dict[str, Any] | None:
    """The first retrier that takes the error, as Step Functions looks for it."""

    def takes(names: list[str]) -> bool:
        wild = "States.ALL" in names or ("States.TaskFailed" in names and error != "States.Timeout")
        return wild or error in names

    return next((retry for retry in state["Retry"] if takes(retry["ErrorEquals"])), None)


def pauses(retry: dict[str, Any]) -> list[float]:
    """In seconds, on the average: full jitter makes half of each."""
    share = 0.5 if retry.get("JitterStrategy") == "FULL" else 1.0
    longest = retry.get("MaxDelaySeconds", float("inf"))
    return [
        share * min(retry["IntervalSeconds"] * retry["BackoffRate"] ** number, longest)
        for number in range(retry["MaxAttempts"])
    ]


TROUBLES = (
    "ClientError",
    "EndpointConnectionError",
    "RuntimeError",
    "Lambda.TooManyRequestsException",
    "Lambda.ServiceException",
    "Lambda.Unknown",
    "Runtime.ExitError",
    "Lambda.ResourceNotFoundException",
)
"""What a function, or Lambda, ends with where AWS throttles, does not answer, or cannot see yet what was made."""
TIMING = Timing()
PATIENCE = {
    "Admit": TIMING.trouble_patience_s,
    "Launch": TIMING.trouble_patience_s,
    WAIT: 3600.0,
    "Train": 20 * TIMING.heartbeat_s,
    "Sync": TIMING.sync_patience_s,
    "Terminate": TIMING.terminate_patience_s,
}


@pytest.mark.parametrize("state", PATIENCE)
@pytest.mark.parametrize("error", TROUBLES)
def test_every_step_outlives_every_error_but_its_verdicts_until_its_patience_is_over(
    machine: Machine, state: str, error: str
) -> None:
    retry = used(machine["States"][state], error)
    assert retry is not None
    waited = sum(pauses(retry))
    assert PATIENCE[state] <= waited <= PATIENCE[state] + retry.get("MaxDelaySeconds", 60)


def test_the_patience_is_that_of_every_working_step(machine: Machine) -> None:
    assert PATIENCE.keys() == tasks(machine).keys()


UNANSWERED = ("States.Timeout", *(error for error in LAMBDAS_OWN if error != THROTTLED))
"""What no function ends with, and before which it may have run for its whole time."""
OUTLIVING = {
    "Admit": TIMING.trouble_patience_s,
    "Launch": TIMING.launch_patience_s + TIMING.trouble_patience_s,
    "Sync": TIMING.sync_patience_s,
}
"""The patience that each function is told: later, whatever it raises is a verdict. Launch also waits for capacity meanwhile."""
COMES_AT_ONCE_S = 0.0


@pytest.mark.parametrize("state", OUTLIVING)
def test_a_function_is_told_since_when_its_state_is_tried_and_for_how_long(machine: Machine, state: str) -> None:
    assert machine["States"][state]["Arguments"]["Payload"]["patience"] == {
        "entered_at": "{% $states.context.State.EnteredTime %}",
        "seconds": OUTLIVING[state],
    }


def test_no_other_function_makes_a_verdict_of_its_troubles(machine: Machine) -> None:
    told = {name for name, state in tasks(machine).items() if "patience" in state["Arguments"]["Payload"]}
    assert told == OUTLIVING.keys()


@pytest.mark.parametrize("error", UNANSWERED)
@pytest.mark.parametrize("state", OUTLIVING)
def test_an_error_that_no_function_raises_is_not_tried_again_as_one_that_comes_at_once(
    machine: Machine, state: str, error: str
) -> None:
    assert used(machine["States"][state], error) is not used(machine["States"][state], "ClientError")


def wholly(retry: dict[str, Any], try_s: float) -> float:
    """How long all of a retrier's tries and the pauses before them are at most."""
    jitter = 2.0 if retry.get("JitterStrategy") == "FULL" else 1.0
    return jitter * sum(pauses(retry)) + int(retry["MaxAttempts"]) * try_s


def longest(state: str, machine: Machine) -> float:
    """How long a state may take at most after the job's deadline, with any mixture of errors. Of a state whose function ends its
    patience only those count later that the function does not raise; before, all of them together are the patience."""
    task = machine["States"][state]
    if (
        state == WAIT
    ):  # after the hours that it may wait only the margin of its time-out, and tries that keep no token, are left
        margin = int(re.findall(r"\+ (\d+)", task["TimeoutSeconds"])[0])
        return float(margin) + sum(wholly(retry, LAUNCHER_S) for retry in task["Retry"])
    if state not in OUTLIVING:
        first_s = float(task["HeartbeatSeconds"] + 1 if state == "Train" else task["TimeoutSeconds"])
        return first_s + sum(wholly(retry, _longest_try(retry, task)) for retry in task["Retry"])
    try_s = float(task["TimeoutSeconds"])
    pending = used(task, "CapacityPending")
    last = float(pending["IntervalSeconds"]) if pending and pending["MaxAttempts"] else 0.0
    unanswered, throttled = used(task, "States.Timeout"), used(task, THROTTLED)
    assert unanswered is not None
    assert throttled is not None
    return OUTLIVING[state] + last + try_s + wholly(unanswered, try_s) + wholly(throttled, COMES_AT_ONCE_S)


def _longest_try(retry: dict[str, Any], task: dict[str, Any]) -> float:
    """Of Train, a try without a heartbeat takes its time, and one that Lambda ends the attendant's."""
    if "HeartbeatSeconds" not in task:
        return float(task["TimeoutSeconds"])
    return float(task["HeartbeatSeconds"] + 1) if "States.HeartbeatTimeout" in retry["ErrorEquals"] else ATTENDANT_S


ATTENDANT_S = 90.0
"""The attendant's own time-out, and the margin of a state."""
LAUNCHER_S = 330.0
"""The launcher's."""
AFTER_THE_DEADLINE = ("Launch", WAIT, "Train", "Sync", "Terminate")


def test_every_state_ends_before_the_machine_does_whatever_errors_it_meets(machine: Machine) -> None:
    margin = machine["TimeoutSeconds"] - LONGEST_S
    assert sum(longest(state, machine) for state in AFTER_THE_DEADLINE) <= margin
    assert longest("Admit", machine) <= margin


def test_no_state_that_holds_instances_outlives_its_patience_by_much(machine: Machine) -> None:
    """An hour and a quarter where Lambda itself never answers; six minutes where it is the function that fails."""
    assert longest("Launch", machine) - OUTLIVING["Launch"] < 75 * 60
    assert machine["States"]["Launch"]["TimeoutSeconds"] < 6 * 60


def test_no_retry_hides_a_verdict_but_the_two_that_ask_for_it(machine: Machine) -> None:
    retried = {
        (name, error)
        for name, state in tasks(machine).items()
        for error in errors.BY_NAME
        if (retry := used(state, error)) and retry["MaxAttempts"]
    }
    assert retried - {("Terminate", error) for error in errors.BY_NAME} == {("Launch", "CapacityPending")}
    assert ("Terminate", "StillRunning") in retried


def test_a_step_that_is_tried_again_and_again_costs_a_bounded_number_of_transitions(machine: Machine) -> None:
    most = {name: sum(retry["MaxAttempts"] for retry in state["Retry"]) for name, state in tasks(machine).items()}
    assert {name for name, number in most.items() if number > 150} == set()


def test_a_states_output_is_the_functions_answer_alone(machine: Machine) -> None:
    told = {name: state.get("Output") for name, state in tasks(machine).items()}
    for by_token in ("Train", WAIT):  # the answer that comes by the token is the whole result
        assert told.pop(by_token) is None
    assert set(told.values()) == {"{% $states.result.Payload %}"}


def test_both_ends_say_where_to_look(machine: Machine) -> None:
    states = machine["States"]
    assert states["Done"]["Output"]["links"] == "{% $links %}"
    assert "$links.execution" in states["Failed"]["Cause"]
    assert "$links.page" in states["Failed"]["Cause"]
    assert states["Admit"]["Assign"]["links"] == "{% $states.result.Payload.links %}"
    (refused,) = states["Admit"]["Catch"]
    assert refused["Assign"]["links"] == "{% null %}"


def test_a_verdict_of_the_attendant_is_final_and_its_own_troubles_are_not(machine: Machine) -> None:
    verdicts, _, troubles = machine["States"]["Train"]["Retry"]
    assert set(verdicts["ErrorEquals"]) == set(errors.BY_NAME)
    assert verdicts["MaxAttempts"] == 0
    assert "States.TaskFailed" in troubles["ErrorEquals"]
    assert troubles["BackoffRate"] == 1
    assert troubles["IntervalSeconds"] * troubles["MaxAttempts"] >= 20 * Timing().heartbeat_s


def test_launch_asks_longer_than_its_patience(machine: Machine) -> None:
    (retry,) = retries(machine["States"]["Launch"], "CapacityPending")
    assert retry["BackoffRate"] == 1
    assert retry["IntervalSeconds"] * retry["MaxAttempts"] > Timing().launch_patience_s


def test_terminate_asks_until_its_patience_is_over_whatever_the_error_is(machine: Machine) -> None:
    (retry,) = machine["States"]["Terminate"]["Retry"]
    assert retry["ErrorEquals"] == ["States.ALL"]
    assert retry["BackoffRate"] == 1
    assert retry["IntervalSeconds"] * retry["MaxAttempts"] == Timing().terminate_patience_s


def test_a_lost_heartbeat_leads_to_a_new_look_as_long_as_the_job_has_hours_and_however_many_were_lost(
    machine: Machine,
) -> None:
    train, lost = machine["States"]["Train"], machine["States"]["Lost heartbeat"]
    assert [one["MaxAttempts"] for one in train["Retry"] if "States.HeartbeatTimeout" in one["ErrorEquals"]] == [0]
    assert (train["Catch"][0]["ErrorEquals"], train["Catch"][0]["Next"]) == (
        ["States.HeartbeatTimeout"],
        "Lost heartbeat",
    )
    (again,) = lost["Choices"]
    assert (again["Next"], again["Assign"], lost["Default"]) == ("Train", {"problem": "{% null %}"}, "Terminate")
    assert again["Condition"] == "{% $millis() < ($deadline + 300) * 1000 %}"
    assert train["HeartbeatSeconds"] == Timing().heartbeat_s
    assert train["Resource"].endswith(":lambda:invoke.waitForTaskToken")
    assert train["Arguments"]["Payload"]["token"] == "{% $states.context.Task.Token %}"


def test_a_job_without_faults_costs_at_most_twelve_transitions(machine: Machine) -> None:
    path = ["Admit", "Plan only?", "Launch", "Train", "Sync", "Terminate", "Decide", "Done"]
    for state, following in pairwise(path):
        assert following in {target for target, why in transitions(machine["States"][state]) if why != "error"}
    assert len(path) <= 12


def test_no_state_polls(machine: Machine) -> None:
    waits = {name for name, state in machine["States"].items() if state["Type"] == "Wait"}
    assert {state["Type"] for state in machine["States"].values()} == {"Task", "Choice", "Wait", "Succeed", "Fail"}
    assert waits == {"Pause"}
    assert {name for name, one in machine["States"].items() for to, _ in transitions(one) if to == "Pause"} == {
        "Decide"
    }


def test_no_state_has_a_token_but_the_two_that_wait(machine: Machine) -> None:
    holders = {name for name, state in machine["States"].items() if "Task.Token" in json.dumps(state)}
    assert holders == {"Train", WAIT}
    for name in holders:
        assert machine["States"][name]["Resource"].endswith(":lambda:invoke.waitForTaskToken")
        assert machine["States"][name]["HeartbeatSeconds"] > 0


def test_a_job_waits_only_where_launch_says_so_and_goes_on_as_if_it_had_been_launched_at_once(machine: Machine) -> None:
    launch, wait = machine["States"]["Launch"], machine["States"][WAIT]
    assert [(one["ErrorEquals"], one["Next"]) for one in launch["Catch"]] == [
        (["CapacityAwaited"], WAIT),
        (["States.ALL"], "Terminate"),
    ]
    assert wait["Next"] == launch["Next"] == "Train"
    assert {name: text.replace(".Payload", "") for name, text in launch["Assign"].items()} == wait["Assign"]


def test_a_wait_that_loses_its_heartbeat_is_entered_again_and_any_other_end_falls_into_terminate(
    machine: Machine,
) -> None:
    wait = machine["States"][WAIT]
    assert [(one["ErrorEquals"], one["Next"]) for one in wait["Catch"]] == [
        (["States.HeartbeatTimeout"], WAIT),
        (["States.ALL"], "Terminate"),
    ]
    assert wait["Catch"][0]["Assign"].keys() == {"events"}  # until when it waits stays as it was


def test_a_wait_costs_the_same_whether_it_lasts_a_minute_or_two_weeks(machine: Machine) -> None:
    """A retry of a wait is an error's, never the clock's: its verdicts and its time-out are final."""
    wait = machine["States"][WAIT]
    for error in (*errors.BY_NAME, "States.Timeout", "States.HeartbeatTimeout"):
        retry = used(wait, error)
        assert retry is None or retry["MaxAttempts"] == 0, error
    most = 14 * 86400 / wait["HeartbeatSeconds"]
    assert most <= 60  # entered so often even where the clock never ticks


def test_every_state_says_what_it_does(machine: Machine) -> None:
    assert [name for name, state in machine["States"].items() if len(state.get("Comment", "")) < 30] == []


def test_no_expression_uses_a_variable_that_may_not_exist(machine: Machine) -> None:
    """Admit's Catch and Failed run before Admit has assigned anything but the problem."""
    for name in ("job", "attempt", "deadline", "recoveries", "rungs", "progress", "artifacts", "region"):
        assert f"${name}" not in json.dumps(machine["States"]["Failed"])
        assert f"${name}" not in json.dumps(machine["States"]["Admit"]["Catch"])


def test_what_done_says_was_assigned_on_every_way_to_it(machine: Machine) -> None:
    assigned = {
        "links",
        "job",
        "attempt",
        "deadline",
        "problem",
        "rungs",
        "region",
        "instances",
        "progress",
        "artifacts",
    }
    counted = {"events", "launched_at", "lost", "pause", "recoveries", "retries", "step", "wait_left_s", "young"}
    states = machine["States"]
    on_the_way = {name for state in ("Admit", "Launch", "Train", "Sync") for name in states[state]["Assign"]}
    used = {word.strip("{%$ }") for word in states["Done"]["Output"].values()}
    assert used <= on_the_way
    assert on_the_way <= assigned | counted | {"late_error", "cost"}
