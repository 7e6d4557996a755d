"""The Grid machine: what it submits, what it waits for, and that every way out of it after Plan ends what runs."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from contract import names, tags
from contract.grid import ROUNDS
from contract.timing import Timing
from localaws.limits import beyond
from stacks.grid_settings import GridSettings
from stacks.parts.grid_machine import BUSY, LONGEST_ROUND_S, longest_round_s
from tests.builders import GRID_LIMITS
from tests.stacks.synth import logical_id
from tests.stacks.variations import MOST_GRID
from tools.diagrams import transitions
from tools.synthesis import Synthesised, definition

YEAR_S = 365 * 86_400
MOST_EVENTS = 25_000
EVENTS_OF_A_LOOK = 5
"""Scheduled, started, failed, and what else a try may write."""


def test_every_step_after_plan_that_fails_leads_to_stop(grid_machine: dict[str, Any]) -> None:
    unguarded = [
        name
        for name in ("Submit", "Collect", "Report")
        if [(c["ErrorEquals"], c["Next"]) for c in grid_machine["States"][name]["Catch"]] != [(["States.ALL"], "Stop")]
    ]
    assert unguarded == []


def test_every_way_to_failed_leads_through_stop_but_that_of_a_refused_plan(grid_machine: dict[str, Any]) -> None:
    before = {name for name, state in grid_machine["States"].items() if "Failed" in dict(transitions(state))}
    assert before == {"Plan", "Stop", "Tell"}
    to_tell = {name for name, state in grid_machine["States"].items() if "Tell" in dict(transitions(state))}
    assert to_tell == {"Stop"}


def test_nothing_but_a_report_leads_to_done(grid_machine: dict[str, Any]) -> None:
    assert {name for name, state in grid_machine["States"].items() if "Done" in dict(transitions(state))} == {"Report"}


def test_every_way_ends_in_done_or_in_failed(grid_machine: dict[str, Any], submissions: dict[str, Any]) -> None:
    ends = {name for name, state in grid_machine["States"].items() if not dict(transitions(state))}
    assert {name: grid_machine["States"][name]["Type"] for name in ends} == {"Done": "Succeed", "Failed": "Fail"}
    assert {name for name, state in submissions.items() if state.get("End")} == {"Over"}


def test_what_fails_is_told_after_it_was_stopped(grid_machine: dict[str, Any]) -> None:
    stop, tell = grid_machine["States"]["Stop"], grid_machine["States"]["Tell"]
    assert (stop["Next"], tell["Next"]) == ("Tell", "Failed")
    assert tell["Arguments"]["Payload"]["totals"] == "{% $stopped.totals %}"
    assert tell["Arguments"]["Payload"]["problem"] == "{% $problem %}"


def test_nothing_runs_before_the_plan_is_whole(grid_machine: dict[str, Any]) -> None:
    assert grid_machine["StartAt"] == "Plan"
    (catch,) = grid_machine["States"]["Plan"]["Catch"]
    assert (catch["ErrorEquals"], catch["Next"]) == (["States.ALL"], "Failed")


def test_the_first_error_survives_a_stop_that_fails(grid_machine: dict[str, Any]) -> None:
    (catch,) = grid_machine["States"]["Stop"]["Catch"]
    assert "$exists($problem.error) ? $problem.error" in catch["Assign"]["problem"]
    (told,) = grid_machine["States"]["Tell"]["Catch"]
    assert "Assign" not in told


def test_missing_lines_are_submitted_again_in_a_round_of_their_own(grid_machine: dict[str, Any]) -> None:
    (again,) = grid_machine["States"]["Decide"]["Choices"]
    assert again["Next"] == "Submit"
    assert again["Assign"] == {"round": "{% $round + 1 %}", "arrays": "{% $collected.arrays %}"}
    assert grid_machine["States"]["Decide"]["Default"] == "Report"


def test_an_array_that_fails_fails_no_grid(submissions: dict[str, Any]) -> None:
    for name in ("Array", "Single"):
        (catch,) = submissions[name]["Catch"]
        assert (catch["ErrorEquals"], catch["Next"]) == (["States.ALL"], "Over"), name
        assert "$substring($cause" in catch["Output"], name
        assert submissions[name]["Next"] == "Over", name


def test_nothing_of_batchs_answer_is_kept(submissions: dict[str, Any]) -> None:
    """A whole answer of each array would be carried from state to state, and nothing catches what is too long."""
    for name in ("Array", "Single"):
        assert set(submissions[name]["Output"]) == {"first", "problem"}


def test_more_lines_than_an_array_takes_are_several_side_by_side(grid_machine: dict[str, Any]) -> None:
    submit = grid_machine["States"]["Submit"]
    assert submit["Items"] == "{% $arrays %}"
    assert submit["ItemProcessor"].get("ProcessorConfig", {"Mode": "INLINE"})["Mode"] == "INLINE"
    assert "MaxConcurrency" not in submit  # 40, where nobody says


def test_a_single_line_is_no_array(submissions: dict[str, Any]) -> None:
    assert "ArrayProperties" not in submissions["Single"]["Arguments"]
    assert submissions["Array"]["Arguments"]["ArrayProperties"] == {"Size": "{% $states.input.size %}"}
    (one,) = submissions["Size"]["Choices"]
    assert (one["Condition"], one["Next"]) == ("{% $states.input.size = 1 %}", "Single")
    assert submissions["Size"]["Default"] == "Array"


@pytest.mark.parametrize("name", ["Array", "Single"])
def test_what_is_submitted_is_what_batch_takes(submissions: dict[str, Any], name: str) -> None:
    """As Step Functions sends it: names begin with small letters there."""
    shape: Any = botocore.session.get_session().get_service_model("batch").operation_model("SubmitJob").input_shape
    given = submissions[name]["Arguments"]
    asked: dict[str, Any] = {
        "jobName": "grid-" + "x" * 80 + "-r3-90000",
        "jobQueue": given["JobQueue"],
        "jobDefinition": given["JobDefinition"],
        "containerOverrides": {
            "environment": [
                {"name": one["Name"], "value": one["Value"]} for one in given["ContainerOverrides"]["Environment"]
            ]
        },
        "tags": given["Tags"],
    }
    if "ArrayProperties" in given:
        asked["arrayProperties"] = {"size": 10_000}
    assert set(given) == {key[0].upper() + key[1:] for key in asked}
    assert not ParamValidator().validate(asked, shape).has_errors()
    assert beyond(shape, asked) == ""
    assert re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,127}", asked["jobName"])


def test_jobs_carry_what_stop_finds_them_by(submissions: dict[str, Any]) -> None:
    for name in ("Array", "Single"):
        assert submissions[name]["Arguments"]["Tags"] == {
            tags.DEPLOYMENT: "trainyard",
            tags.GRID: "{% $plan.grid %}",
            tags.EXECUTION: "{% $states.context.Execution.Id %}",
        }


def test_a_definition_with_a_number_is_never_submitted(submissions: dict[str, Any], child: dict[str, Any]) -> None:
    """Its number is gone after the next deploy, and a grid may outlive that."""
    for name in ("Array", "Single"):
        assert submissions[name]["Arguments"]["JobDefinition"] == names.child_definition("trainyard")
    assert child["JobDefinitionName"] == names.child_definition("trainyard")


def test_the_machine_waits_for_its_definition(grid: dict[str, Any]) -> None:
    """Nothing in it refers to the one that is known by name."""
    machine = grid["Resources"][logical_id(grid, "AWS::StepFunctions::StateMachine")]
    assert logical_id(grid, "AWS::Batch::JobDefinition") in machine["DependsOn"]


def test_the_machine_outlives_all_rounds_and_a_year_is_enough(
    grid_machine: dict[str, Any], submissions: dict[str, Any]
) -> None:
    assert ROUNDS * submissions["Array"]["TimeoutSeconds"] < grid_machine["TimeoutSeconds"] < YEAR_S


def test_every_task_outlives_a_moment_in_which_its_service_does_not_answer(
    grid_machine: dict[str, Any], submissions: dict[str, Any]
) -> None:
    for name in ("Array", "Single"):
        (retry,) = submissions[name]["Retry"]
        assert retry["ErrorEquals"] == BUSY, name
        assert retry["MaxAttempts"] >= 10, name
    for name in ("Collect", "Report", "Stop", "Tell"):
        last = grid_machine["States"][name]["Retry"][-1]
        assert last["ErrorEquals"] == ["States.ALL"], name
        assert last["MaxAttempts"] >= 12, name
    errors = [error for retry in grid_machine["States"]["Plan"]["Retry"] for error in retry["ErrorEquals"]]
    assert {"Lambda.TooManyRequestsException", "Lambda.ServiceException", "Sandbox.Timedout"} <= {*errors}


def test_a_grid_that_has_failed_is_not_collected_again_and_again(grid_machine: dict[str, Any]) -> None:
    still, failed, _ = grid_machine["States"]["Collect"]["Retry"]
    assert (still["ErrorEquals"], failed["ErrorEquals"]) == (["StillTraining"], ["GridFailed"])
    assert failed["MaxAttempts"] == 0


def test_a_round_is_as_long_as_its_lines_need_one_after_the_other() -> None:
    timing = Timing()
    one = longest_round_s(replace(GRID_LIMITS, max_lines=10, max_concurrent=10), timing)
    assert one == (72 + 24) * 3600 + timing.training_patience_s + 86_400
    assert longest_round_s(GRID_LIMITS, timing) > 10 * 72 * 3600
    assert longest_round_s(replace(GRID_LIMITS, max_lines=100_000, max_concurrent=1), timing) == LONGEST_ROUND_S


def test_waiting_for_trainings_never_fills_the_history(grid_machine: dict[str, Any], varied: Synthesised) -> None:
    usual, most = GridSettings().limits, MOST_GRID
    assert (
        most.max_hours * most.max_lines / most.max_concurrent > usual.max_hours * usual.max_lines / usual.max_concurrent
    )
    waits_fit(grid_machine, usual.max_hours)
    waits_fit(definition(varied.template("grid")), most.max_hours)


def waits_fit(machine: dict[str, Any], max_hours: float) -> None:
    """Nor do the waits of all rounds together fill it; and one is as long as the longest training."""
    waits = machine["States"]["Collect"]["Retry"][0]
    assert waits["ErrorEquals"] == ["StillTraining"]
    assert ROUNDS * EVENTS_OF_A_LOOK * waits["MaxAttempts"] < MOST_EVENTS - 2000
    assert waits["MaxAttempts"] * waits["MaxDelaySeconds"] >= max_hours * 3600


def test_a_stop_is_asked_again_whatever_the_error(grid_machine: dict[str, Any]) -> None:
    (again,) = grid_machine["States"]["Stop"]["Retry"]
    assert again["ErrorEquals"] == ["States.ALL"]
    assert again["MaxAttempts"] * again["IntervalSeconds"] >= Timing().grid_stop_patience_s


def test_a_divided_timing_changes_nothing_but_what_waits(grid_machine: dict[str, Any], faster: Synthesised) -> None:
    other = definition(faster.template("grid"))
    different = {
        (name, key)
        for name, state in grid_machine["States"].items()
        for key in state
        if state[key] != other["States"][name][key]
    }
    assert different == {("Submit", "ItemProcessor"), ("Collect", "Retry"), ("Stop", "Retry")}
    assert other["States"]["Stop"]["Retry"][0]["IntervalSeconds"] == 2
    assert {key for key in grid_machine if grid_machine[key] != other[key]} == {"States", "TimeoutSeconds"}
