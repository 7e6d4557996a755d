"""A state that starts another execution and waits for its end: its result, its errors, its rights, and what a stop of it ends."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from localaws.faults import plan_faults
from localaws.iam.guard import Guard
from localaws.server import LocalAws
from localaws.services import sync_tasks
from localaws.services.sync_tasks import ABORTED, CHILD, SyncTask
from localaws.testing.asking import OWNER, Account
from localaws.testing.calm import CALM, meanwhile, over
from localaws.testing.waiting import until

pytestmark = [pytest.mark.rehearsal]
SYNC_2 = "arn:aws:states:::states:startExecution.sync:2"
LONG = {"Type": "Wait", "Seconds": 600, "End": True}
QUICK = {"Type": "Pass", "Output": {"lower": {"x": 1}, "Upper": [2]}, "End": True}
FAILS = {"Type": "Fail", "Error": "NodeLost", "Cause": "node 1 fell silent"}
GIVEN = {"line": {"a": 1}, "Line": "text"}
DATES = {"StartDate", "StopDate"}
MACHINES = f"arn:aws:states:us-east-1:{OWNER}:stateMachine:c-*"
CHILDREN = f"arn:aws:states:us-east-1:{OWNER}:execution:c-*"
RULE = f"arn:aws:events:us-east-1:{OWNER}:rule/StepFunctionsGetEventsForStepFunctionsExecutionRule"
RIGHTS = {
    "states:StartExecution": MACHINES,
    "states:DescribeExecution": CHILDREN,
    "states:StopExecution": CHILDREN,
    "events:PutRule": RULE,
    "events:PutTargets": RULE,
    "events:DescribeRule": RULE,
}


class Family:
    """Machines of one state each, and parents that start them."""

    def __init__(self, aws: LocalAws) -> None:
        self.aws, self.states = aws, aws.client("stepfunctions")
        roles = (
            aws.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument="{}") for name in ("parent", "child")
        )
        self.parent_role, self.child_role = (one["Role"]["Arn"] for one in roles)

    def machine(self, prefix: str, state: Mapping[str, Any], role: str = "", **fields: Any) -> str:
        """ARN of a new machine of this state; a Catch may go to `Caught`."""
        caught = {"Type": "Pass", "Output": "{% $states.input %}", "End": True}
        definition = {"QueryLanguage": "JSONata", "StartAt": "Work", "States": {"Work": state, "Caught": caught}}
        made = self.states.create_state_machine(
            name=f"{prefix}-{time.time_ns()}",
            definition=json.dumps({**definition, **fields}),
            roleArn=role or self.child_role,
        )
        return str(made["stateMachineArn"])

    def child(self, state: Mapping[str, Any], **fields: Any) -> str:
        return self.machine("c", state, **fields)

    def start(
        self, child: str, *, resource: str = SYNC_2, name: str = "child", parent: str = "p", **fields: Any
    ) -> str:
        """Execution of a new parent that starts the child and catches what goes wrong."""
        task = {
            "Type": "Task",
            "Resource": resource,
            "Arguments": {"StateMachineArn": child, "Name": name, "Input": GIVEN},
            "Catch": [{"ErrorEquals": ["States.ALL"], "Output": "{% $states.errorOutput %}", "Next": "Caught"}],
            "End": True,
            **fields,
        }
        machine = self.machine("p", task, self.parent_role)
        return str(self.states.start_execution(stateMachineArn=machine, name=parent)["executionArn"])

    def result(self, child: str, **how: Any) -> Any:
        """Output of a parent: of the child's end, or of the error."""
        return json.loads(over(self.states, self.start(child, **how))["output"])

    def of(self, child: str) -> list[str]:
        found = self.states.list_executions(stateMachineArn=child)["executions"]
        return [one["executionArn"] for one in found]

    def running(self, child: str) -> str:
        """ARN of the child's only execution, once it runs."""
        (arn,) = until(lambda: self.of(child))
        return str(arn)

    def status(self, execution: str) -> str:
        return str(self.states.describe_execution(executionArn=execution)["status"])


@pytest.fixture(scope="module")
def family() -> Iterator[Family]:
    with LocalAws(CALM) as aws:
        yield Family(aws)


# results


def test_the_result_is_the_childs_description_with_input_and_output_as_values(family: Family) -> None:
    child = family.child(QUICK)
    result = family.result(child)
    (execution,) = family.of(child)
    assert {key: value for key, value in result.items() if key not in DATES} == {
        "ExecutionArn": execution,
        "StateMachineArn": child,
        "Name": "child",
        "Status": "SUCCEEDED",
        "Input": GIVEN,
        "Output": {"lower": {"x": 1}, "Upper": [2]},
        "OutputDetails": {"Included": True},
    }
    began, ended = result["StartDate"], result["StopDate"]
    assert (type(began), type(ended)) == (int, int)
    assert time.time() * 1000 - 3600_000 < began <= ended <= time.time() * 1000


def test_the_older_pattern_leaves_input_and_output_as_text(family: Family) -> None:
    result = family.result(family.child(QUICK), resource=SYNC_2.removesuffix(":2"))
    assert (json.loads(result["Input"]), json.loads(result["Output"])["Upper"]) == (GIVEN, [2])
    assert '": ' not in result["Input"]


def test_the_end_of_a_child_is_not_seen_at_once(family: Family) -> None:
    family.result(family.child(QUICK))
    calls = [call for call in family.aws.recorder.of(role=family.parent_role) if call.service == "states"]
    started, *seen = calls[[call.action for call in calls].index("StartExecution") :]
    assert {call.action for call in seen} <= {"StartExecution", "DescribeExecution"}
    assert seen[0].at - started.at >= CHILD.look_s


# errors


def test_a_child_that_fails_is_an_error_with_its_description(family: Family) -> None:
    problem = family.result(family.child(FAILS))
    assert problem["Error"] == "States.TaskFailed"
    cause = json.loads(problem["Cause"])
    assert (cause["Status"], cause["Error"], cause["Cause"]) == ("FAILED", "NodeLost", "node 1 fell silent")
    assert cause["Input"] == GIVEN
    assert "Output" not in cause


def test_a_child_beyond_its_time_is_an_error(family: Family) -> None:
    problem = family.result(family.child(LONG, TimeoutSeconds=1))
    assert (problem["Error"], json.loads(problem["Cause"])["Status"]) == ("States.TaskFailed", "TIMED_OUT")


def test_a_child_that_a_person_stops_is_an_error(family: Family) -> None:
    child = family.child(LONG)
    parent = family.start(child)
    family.states.stop_execution(executionArn=family.running(child), error="Enough", cause="said a person")
    problem = json.loads(over(family.states, parent)["output"])
    cause = json.loads(problem["Cause"])
    assert (problem["Error"], cause["Status"], cause["Error"]) == ("States.TaskFailed", "ABORTED", "Enough")


def test_a_child_that_does_not_exist_is_an_error(family: Family) -> None:
    problem = family.result(f"arn:aws:states:us-east-1:{OWNER}:stateMachine:none")
    assert problem["Error"] == "StepFunctions.StateMachineDoesNotExistException"


def test_a_name_that_runs_with_another_input_is_taken(family: Family) -> None:
    child = family.child(LONG)
    first = family.states.start_execution(stateMachineArn=child, name="child", input='{"other":1}')["executionArn"]
    problem = family.result(child)
    assert problem["Error"] == "StepFunctions.ExecutionAlreadyExistsException"
    assert first in problem["Cause"]
    assert family.status(first) == "RUNNING"
    family.states.stop_execution(executionArn=first)


def test_a_name_that_has_ended_is_taken_even_with_the_same_input(family: Family) -> None:
    child = family.child(QUICK)
    assert family.result(child)["Status"] == "SUCCEEDED"
    assert family.result(child)["Error"] == "StepFunctions.ExecutionAlreadyExistsException"
    assert len(family.of(child)) == 1


def test_a_name_that_runs_with_the_same_input_is_waited_for(family: Family) -> None:
    child = family.child({**LONG, "Seconds": 3})
    first, second = family.start(child), family.start(child)
    ends = [json.loads(over(family.states, one)["output"]) for one in (first, second)]
    assert [one["Status"] for one in ends] == ["SUCCEEDED", "SUCCEEDED"]
    assert ends[0] == ends[1]
    assert len(family.of(child)) == 1


# stops


def test_a_parent_that_is_stopped_stops_its_child(family: Family) -> None:
    child = family.child(LONG)
    parent = family.start(child)
    execution = family.running(child)
    family.states.stop_execution(executionArn=parent)
    ended = over(family.states, execution)
    assert (ended["status"], ended["cause"]) == ("ABORTED", ABORTED)
    assert family.status(parent) == "ABORTED"


def test_a_state_beyond_its_time_stops_its_child_and_the_parent_goes_on(family: Family) -> None:
    child = family.child(LONG)
    assert family.result(child, TimeoutSeconds=2)["Error"] == "States.Timeout"
    assert over(family.states, family.running(child))["status"] == "ABORTED"


def test_a_stop_that_is_lost_leaves_the_child_running(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    decided: list[str] = []
    stop = SyncTask._stop

    def noted(task: SyncTask, client: Any, identity: str, execution: str) -> None:
        stop(task, client, identity, execution)
        decided.append(execution)

    monkeypatch.setattr(SyncTask, "_stop", noted)
    lost, kept = family.child(LONG), family.child(LONG)
    with meanwhile(family.aws, faults=plan_faults("stop-lost:execution=unlucky")):
        parents = [family.start(lost, parent="unlucky"), family.start(kept, parent="lucky")]
        left, stopped = family.running(lost), family.running(kept)
        for one in parents:
            family.states.stop_execution(executionArn=one)
        assert over(family.states, stopped)["status"] == "ABORTED"
        until(lambda: {*decided} == {"unlucky", "lucky"})
    assert family.status(left) == "RUNNING"
    assert [call for call in family.aws.recorder.of(name="states:StopExecution") if left in str(call.parameters)] == []
    family.states.stop_execution(executionArn=left)


# rights


@contextmanager
def rights(family: Family, *missing: str) -> Iterator[Guard]:
    """Gives the parents' role all rights that AWS asks for but these."""
    statements = [
        {"Effect": "Allow", "Action": action, "Resource": resource}
        for action, resource in RIGHTS.items()
        if action not in missing
    ]
    policies = {"own": {"Version": "2012-10-17", "Statement": statements}}
    guard = Guard(Account(), lambda role: policies if role == family.parent_role else None, lambda *_: True)
    family.aws.recorder.interceptors.insert(0, guard)
    try:
        yield guard
    finally:
        family.aws.recorder.interceptors.remove(guard)
        guard._simulator.close()


def test_the_rights_that_aws_documents_are_enough(family: Family) -> None:
    long = family.child(LONG)
    with rights(family) as guard:
        assert family.result(family.child(QUICK))["Status"] == "SUCCEEDED"
        parent = family.start(long)
        execution = family.running(long)
        family.states.stop_execution(executionArn=parent)
        assert over(family.states, execution)["status"] == "ABORTED"
    assert guard.denied == []


@pytest.mark.parametrize(
    "missing", ["states:StartExecution", "events:PutRule", "events:PutTargets", "events:DescribeRule"]
)
def test_without_a_right_nothing_starts(family: Family, missing: str) -> None:
    child = family.child(QUICK)
    with rights(family, missing) as guard:
        problem = family.result(child)
    assert problem["Error"] == "StepFunctions.AccessDeniedException"
    assert missing in problem["Cause"]
    assert [call.name for call in guard.denied] == [missing]
    assert family.of(child) == []


def test_without_the_right_to_describe_the_state_fails(family: Family) -> None:
    with rights(family, "states:DescribeExecution") as guard:
        assert family.result(family.child(QUICK))["Error"] == "StepFunctions.AccessDeniedException"
    assert {call.name for call in guard.denied} == {"states:DescribeExecution"}


def test_without_the_right_to_stop_the_child_runs_on(family: Family) -> None:
    child = family.child(LONG)
    with rights(family, "states:StopExecution") as guard:
        parent = family.start(child)
        execution = family.running(child)
        family.states.stop_execution(executionArn=parent)
        until(lambda: guard.denied)
    assert [call.name for call in guard.denied] == ["states:StopExecution"]
    assert family.status(execution) == "RUNNING"
    family.states.stop_execution(executionArn=execution)


def test_another_rule_than_step_functions_own_is_moto_s(family: Family) -> None:
    events = family.aws.client("events")
    made = events.put_rule(Name="ours", EventPattern='{"source": ["test"]}')
    assert made["RuleArn"].endswith(":rule/ours")
    assert sync_tasks.MANAGED_RULES not in json.dumps(events.list_rules()["Rules"])
