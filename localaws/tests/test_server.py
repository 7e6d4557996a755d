"""The local AWS: deployed functions run from their layer, machines wait and fail as AWS's, events arrive as AWS's."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localaws.server import LocalAws
from localaws.testing.calm import CALM, impatient, meanwhile, refusal
from localaws.testing.waiting import until
from localaws.tests.app import CATCH, App, echo, machine

pytestmark = [pytest.mark.rehearsal]
KEEP = {"do": "keep", "token": "{% $states.context.Task.Token %}"}


@pytest.fixture(scope="module")
def app() -> Iterator[App]:
    with LocalAws(CALM) as aws:
        yield App(aws)


@pytest.fixture(autouse=True)
def _no_tokens(app: App) -> None:
    for key in app.keys("tokens/"):
        app.s3.delete_object(Bucket=app.bucket, Key=key)


# functions


def test_a_function_imports_its_sdk_from_the_deployed_layer(app: App) -> None:
    assert app.invoke(do="answer", value=1) == (None, {"do": "answer", "value": 1})
    whole, detail = app.aws.workers.imported_layer()
    assert whole, detail


def test_a_function_sees_nothing_of_the_environment_around_it(app: App) -> None:
    assert "MOTO_PORT" in os.environ
    _, seen = app.invoke(do="environment")
    assert seen["BUCKET"] == app.bucket
    assert seen["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] == "1024"
    assert not {"VIRTUAL_ENV", "MOTO_PORT"} & seen.keys()
    assert ".venv" not in seen["PYTHONPATH"]


def test_an_error_of_a_function_has_awss_shape(app: App) -> None:
    failed, document = app.invoke(do="fail")
    assert failed == "Unhandled"
    assert document["errorType"] == "CapacityPending"
    assert document["errorMessage"] == 'no "capacity"\nanywhere'
    assert document["stackTrace"]


def test_a_function_that_takes_too_long_is_ended_and_the_next_call_answered(app: App) -> None:
    failed, document = app.invoke(do="sleep", seconds=30)
    assert failed == "Unhandled"
    assert "Task timed out after 2.00 seconds" in document["errorMessage"]
    assert app.invoke(do="answer") == (None, {"do": "answer"})


def test_a_function_has_no_more_of_a_processor_than_its_memory_buys(app: App) -> None:
    """1.5 s of a whole processor are 2.6 s of one at 1024 MB, and the function has 2 s."""
    failed, document = app.invoke(do="compute", seconds=1.5)
    assert failed == "Unhandled"
    assert "Task timed out after 2.00 seconds" in document["errorMessage"]
    assert app.invoke(do="compute", seconds=0.1) == (None, {"computed": True})


def test_a_function_whose_process_dies_fails_and_the_next_call_is_answered(app: App) -> None:
    _, document = app.invoke(do="exit")
    assert document["errorType"] == "Runtime.ExitError"
    assert app.invoke(do="answer") == (None, {"do": "answer"})


def test_what_a_function_prints_is_in_its_log_group(app: App) -> None:
    app.invoke(do="answer")
    name = app.function.rsplit(":", 1)[-1]
    events = app.aws.client("logs").filter_log_events(logGroupName=f"/aws/lambda/{name}")["events"]
    assert "doing answer" in [event["message"] for event in events]


def test_calls_are_recorded_with_the_roles_that_made_them(app: App) -> None:
    app.run(echo(app.function))
    app.invoke(id="recorded", source="nobody")
    assert app.aws.recorder.of(role=app.machine_role, name="lambda:Invoke")
    assert app.aws.recorder.of(role=app.role, name="s3:PutObject")
    assert not app.aws.recorder.of(role=app.role, name="lambda:Invoke")


def test_an_asynchronous_invocation_is_accepted_at_once(app: App) -> None:
    payload = json.dumps({"id": "later", "source": "asynchronous"}).encode()
    assert app.functions.invoke(FunctionName=app.function, InvocationType="Event", Payload=payload)["StatusCode"] == 202
    until(lambda: app.seen("asynchronous"))


# machines


def test_a_machine_that_cloudformation_deployed_runs(app: App) -> None:
    started = app.states.start_execution(stateMachineArn=app.deployed_machine, input='{"a": [1, null]}')
    assert json.loads(app.end(started["executionArn"])["output"]) == {"a": [1, None]}


def test_values_are_never_taken_for_expressions_or_text_to_escape(app: App) -> None:
    awkward: dict[str, Any] = {"name": "\"quoted\" 'twice'\n{% $states.input %}\\ $uuid() \u202e", "none": None}
    assign = {"kept": "{% $states.result.Payload.value %}"}
    first = {
        **machine(app.function, {"do": "answer", "value": "{% $states.input %}"})["States"]["Work"],
        "Assign": assign,
    }
    del first["End"]
    definition = echo(app.function)
    definition["States"] = {
        "Work": {**first, "Next": "Again"},
        "Again": {"Type": "Succeed", "Output": {"kept": "{% $kept %}", "length": "{% $length($kept.name) %}"}},
    }
    ended = app.run(definition, awkward)
    assert json.loads(ended["output"]) == {"kept": awkward, "length": len(awkward["name"])}


def test_a_functions_error_is_caught_by_its_name_with_its_message(app: App) -> None:
    problem = json.loads(app.run(machine(app.function, {"do": "fail"}, Catch=CATCH))["output"])
    assert problem["Error"] == "CapacityPending"
    assert json.loads(problem["Cause"])["errorMessage"] == 'no "capacity"\nanywhere'


def test_a_retry_leaves_the_time_alone_in_which_its_state_was_entered(app: App) -> None:
    """The arguments are computed for every try, and the end of a step's patience is told in them."""
    tried = {"do": "fail", "entered_at": "{% $states.context.State.EnteredTime %}", "tried_at": "{% $now() %}"}
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 2, "BackoffRate": 1}]
    execution = app.start(machine(app.function, tried, Retry=retry))
    assert app.end(execution)["status"] == "FAILED"
    events = app.states.get_execution_history(executionArn=execution)["events"]
    asked = [
        json.loads(e["taskScheduledEventDetails"]["parameters"])["Payload"]
        for e in events
        if e["type"] == "TaskScheduled"
    ]
    assert len(asked) == 3
    assert len({one["tried_at"] for one in asked}) == 3
    assert len({one["entered_at"] for one in asked}) == 1


def test_an_expression_without_a_value_is_a_query_evaluation_error(app: App) -> None:
    ended = app.run(machine(app.function, {"do": "answer", "value": "{% $states.input.absent %}"}, Catch=CATCH))
    assert json.loads(ended["output"])["Error"] == "States.QueryEvaluationError"


def test_a_fail_state_shows_its_computed_error_and_cause(app: App) -> None:
    fail = {"Type": "Fail", "Error": "{% $states.input.error %}", "Cause": "{% 'because ' & $states.input.cause %}"}
    ended = app.run(
        {"QueryLanguage": "JSONata", "StartAt": "F", "States": {"F": fail}}, {"error": "NodeLost", "cause": '"x"'}
    )
    assert (ended["status"], ended["error"], ended["cause"]) == ("FAILED", "NodeLost", 'because "x"')


def test_a_machine_beyond_its_time_is_over_while_its_task_still_runs(app: App) -> None:
    execution = app.start({**machine(app.function, {"do": "sleep", "seconds": 1.5}), "TimeoutSeconds": 1})
    ended = app.end(execution)
    assert (ended["status"], app.history(execution)[-1]) == ("TIMED_OUT", "ExecutionTimedOut")
    assert ended["stopDate"]


def test_a_name_is_used_once_except_for_the_same_input_while_it_runs(app: App) -> None:
    execution = app.start(machine(app.function, KEEP, wait=True, TimeoutSeconds=60), {"a": 1}, name="once")
    arn = execution.replace(":execution:", ":stateMachine:").rsplit(":", 1)[0]
    app.tokens(1)
    same = {"stateMachineArn": arn, "name": "once", "input": '{"a": 1}'}
    assert app.states.start_execution(**same)["executionArn"] == execution
    assert refusal(app.states.start_execution, **(same | {"input": '{"a": 2}'})) == "ExecutionAlreadyExists"
    app.states.stop_execution(executionArn=execution)
    assert refusal(app.states.start_execution, **same) == "ExecutionAlreadyExists"


# tokens


def test_a_token_brings_its_output_once(app: App) -> None:
    execution = app.start(machine(app.function, KEEP, wait=True, TimeoutSeconds=60, Output="{% $states.result %}"))
    (token,) = app.tokens(1)
    app.states.send_task_success(taskToken=token, output='{"progress": "\\"all\\""}')
    assert json.loads(app.end(execution)["output"]) == {"progress": '"all"'}
    assert refusal(app.states.send_task_success, taskToken=token, output="{}") == "TaskTimedOut"


def test_a_token_answered_before_its_function_returned_is_not_lost(app: App) -> None:
    payload = {"do": "answer-at-once", "token": "{% $states.context.Task.Token %}"}
    ended = app.run(machine(app.function, payload, wait=True, TimeoutSeconds=60, HeartbeatSeconds=5))
    assert json.loads(ended["output"]) == {"early": True}


def test_a_failure_by_token_keeps_its_name_and_cause(app: App) -> None:
    execution = app.start(machine(app.function, KEEP, wait=True, TimeoutSeconds=60, Catch=CATCH))
    app.states.send_task_failure(taskToken=app.tokens(1)[0], error="NodeLost", cause="node 1 fell silent")
    assert json.loads(app.end(execution)["output"]) == {"Error": "NodeLost", "Cause": "node 1 fell silent"}


def test_an_unknown_token_is_invalid(app: App) -> None:
    assert refusal(app.states.send_task_heartbeat, taskToken="nobody's") == "InvalidToken"


def test_a_lost_heartbeat_is_retried_with_a_new_token_and_the_old_one_is_dead(app: App) -> None:
    retry = [{"ErrorEquals": ["States.HeartbeatTimeout"], "IntervalSeconds": 1, "MaxAttempts": 99, "BackoffRate": 1}]
    definition = machine(
        app.function, KEEP, wait=True, TimeoutSeconds="{% $max([600, 1]) %}", HeartbeatSeconds=1, Retry=retry
    )
    execution = app.start(definition)
    old = app.tokens(2)[0]
    assert refusal(app.states.send_task_success, taskToken=old, output="{}") == "TaskTimedOut"

    def answered() -> bool:
        """The newest token is alive for a second; a slow machine may need several."""
        try:
            app.states.send_task_success(taskToken=app.tokens(2)[-1], output='"new"')
        except app.states.exceptions.TaskTimedOut:
            return False
        return True

    until(answered)
    assert app.end(execution)["output"] == '"new"'
    events = app.states.get_execution_history(executionArn=execution)["events"]
    assert {e["taskTimedOutEventDetails"]["error"] for e in events if e["type"] == "TaskTimedOut"} == {
        "States.HeartbeatTimeout"
    }


def test_heartbeats_keep_a_task_alive_and_its_time_out_ends_it(app: App) -> None:
    asked, last = [time.monotonic()], "TaskTimedOut"
    execution = app.start(machine(app.function, KEEP, wait=True, TimeoutSeconds=6, HeartbeatSeconds=2, Catch=CATCH))
    (token,) = app.tokens(1)
    while app.states.describe_execution(executionArn=execution)["status"] == "RUNNING":
        try:
            app.states.send_task_heartbeat(taskToken=token)
        except ClientError as error:
            last = error.response["Error"]["Code"]
        asked.append(time.monotonic())
        time.sleep(0.3)
    assert last == "TaskTimedOut"
    if max(after - before for before, after in pairwise(asked)) > 1.8:
        return  # on a slow machine heartbeats were late, and could keep nothing alive
    assert len(asked) > 5
    assert json.loads(app.end(execution)["output"])["Error"] == "States.Timeout"


def test_an_execution_can_be_stopped_while_it_waits_and_its_token_is_dead(app: App) -> None:
    definition = machine(app.function, KEEP, wait=True, TimeoutSeconds=60, HeartbeatSeconds=30, Catch=CATCH)
    execution = app.start(definition)
    (token,) = app.tokens(1)
    app.states.stop_execution(executionArn=execution, error="Enough", cause="said a person")
    ended = app.states.describe_execution(executionArn=execution)
    assert (ended["status"], ended["error"], ended["cause"]) == ("ABORTED", "Enough", "said a person")
    assert app.history(execution)[-1] == "ExecutionAborted"
    assert refusal(app.states.send_task_success, taskToken=token, output="{}") == "TaskTimedOut"


def test_an_execution_can_be_stopped_while_its_function_runs(app: App) -> None:
    execution = app.start(machine(app.function, {"do": "sleep", "seconds": 1.5}))
    until(lambda: "TaskStarted" in app.history(execution))
    app.states.stop_execution(executionArn=execution)
    assert app.states.describe_execution(executionArn=execution)["status"] == "ABORTED"
    time.sleep(1.7)
    assert app.history(execution)[-1] == "ExecutionAborted"


# events


def test_a_new_object_reaches_the_function_with_a_matching_rule_only(app: App) -> None:
    for key in ("jobs/j/nodes/0000.json", "jobs/j/nodes/0001.urgent.json"):
        app.s3.put_object(Bucket=app.bucket, Key=key, Body=b"{}")
    (event,) = until(lambda: app.seen("aws.s3"))
    assert (event["detail-type"], event["resources"]) == ("Object Created", [f"arn:aws:s3:::{app.bucket}"])
    assert event["detail"]["object"]["key"] == "jobs/j/nodes/0001.urgent.json"
    assert event["detail"]["bucket"] == {"name": app.bucket}
    assert event["time"].endswith("Z")


def test_the_end_of_an_execution_is_an_event(app: App) -> None:
    execution = app.start(machine(app.function, {"do": "fail"}))
    app.end(execution)
    events = until(lambda: [one for one in app.seen("aws.states") if one["resources"] == [execution]])
    assert events[0]["detail-type"] == "Step Functions Execution Status Change"
    assert (events[0]["detail"]["status"], events[0]["detail"]["error"]) == ("FAILED", "CapacityPending")
    assert events[0]["detail"]["stopDate"] >= events[0]["detail"]["startDate"]


def test_a_rule_of_prefixes_and_suffixes_takes_what_it_should(app: App) -> None:
    for kind in ("apple", "buzz", "pear"):
        app.aws.emit("test", "Thing", {"kind": kind}, [], "us-east-1")
    until(lambda: len(app.seen("test")) >= 2)
    time.sleep(0.3)
    assert sorted(event["detail"]["kind"] for event in app.seen("test")) == ["apple", "buzz"]


def test_an_event_whose_function_fails_is_tried_twice_more(app: App) -> None:
    app.aws.emit("test", "Thing", {"kind": "again", "fails": True}, [], "us-east-1")

    def tries() -> int:
        return sum(event["detail"]["kind"] == "again" for event in app.seen("test"))

    until(lambda: tries() == 3)
    time.sleep(1)
    assert tries() == 3


def test_the_clock_fires_at_the_speed_of_the_rehearsal(app: App) -> None:
    before, began = len(app.seen("aws.events")), time.monotonic()
    until(lambda: len(app.seen("aws.events")) >= before + 4)
    assert time.monotonic() - began > 1.0  # every half second, each up to 0.05 s late


# conditions


def test_pages_are_short_and_continue(app: App) -> None:
    for number in range(5):
        app.s3.put_object(Bucket=app.bucket, Key=f"pages/{number} +&", Body=b"")
    with meanwhile(app.aws, page_size=2):
        page = app.s3.list_objects_v2(Bucket=app.bucket, Prefix="pages/", MaxKeys=1000)
        keys = app.keys("pages/")
    assert (len(page["Contents"]), page["IsTruncated"]) == (2, True)
    assert keys == [f"pages/{number} +&" for number in range(5)]


THROTTLES = [
    ("ec2", "describe_regions", "RequestLimitExceeded"),
    ("s3", "list_buckets", "SlowDown"),
    ("iam", "list_roles", "Throttling"),
    ("ssm", "describe_parameters", "ThrottlingException"),
    ("stepfunctions", "list_state_machines", "ThrottlingException"),
    ("lambda", "list_functions", "TooManyRequestsException"),
]


@pytest.mark.parametrize(("service", "call", "code"), THROTTLES, ids=lambda value: str(value))
def test_a_throttled_call_of_a_function_has_the_services_own_error(
    app: App, service: str, call: str, code: str
) -> None:
    client = impatient(app.aws, app.role, service)
    with meanwhile(app.aws, throttled=1.0):
        assert refusal(getattr(client, call)) == code
        getattr(app.aws.client(service), call)()  # whoever deploys is not throttled
    assert any(call.error == code for call in app.aws.recorder.of(role=app.role))
