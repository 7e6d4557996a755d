"""The rest of the fake: task tokens, parameters and secrets, logs, events, and what befalls a call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from tests.builders import NOW, PLACE
from tests.fakes.aws import CALL_S, Aws
from tests.fakes.events import Event
from tests.fakes.faked import BUCKET, ONCE, connected, ids, launch, refused
from tests.fakes.faults import Kind, Mishap
from tests.fakes.yard import ABROAD, deployed


@pytest.fixture
def aws() -> Iterator[Aws]:
    with connected() as fake:
        yield fake


def send(what: str, token: str, **arguments: Any) -> str:
    try:
        getattr(boto3.client("stepfunctions", config=ONCE), f"send_task_{what}")(taskToken=token, **arguments)
    except ClientError as problem:
        return str(problem.response["Error"]["Code"])
    return ""


def test_a_token_is_answered_once(aws: Aws) -> None:
    wait = aws.states.wait(heartbeat_s=300, timeout_s=3600)
    assert send("success", wait.token, output='{"a": 1}') == ""
    assert send("failure", wait.token, error="Late", cause="") == "TaskTimedOut"
    assert wait.output == {"a": 1}
    assert wait.error is None


def test_a_heartbeat_keeps_a_token_alive_and_its_absence_kills_it(aws: Aws) -> None:
    wait = aws.states.wait(heartbeat_s=300, timeout_s=3600)
    for _ in range(3):
        aws.clock.run(299)
        assert send("heartbeat", wait.token) == ""
    aws.clock.run(300)
    assert send("heartbeat", wait.token) == "TaskTimedOut"
    assert wait.timed_out(aws.clock.now) == "States.HeartbeatTimeout"


def test_tokens_of_nobody_and_of_long_ago_have_errors_of_their_own(aws: Aws) -> None:
    wait = aws.states.wait(heartbeat_s=300, timeout_s=3600)
    aws.states.forget(wait.token)
    assert send("heartbeat", wait.token) == "TaskDoesNotExist"
    assert send("heartbeat", "made up") == "InvalidToken"


def test_answers_beyond_their_size_are_refused(aws: Aws) -> None:
    wait = aws.states.wait(heartbeat_s=300, timeout_s=3600)
    assert send("failure", wait.token, cause="x" * 32_769) == "ValidationException"
    assert send("success", wait.token, output='"' + "x" * 262_142 + '"') == ""
    other = aws.states.wait(heartbeat_s=300, timeout_s=3600)
    assert send("success", other.token, output='"' + "x" * 262_144 + '"') in {"InvalidOutput", "ValidationException"}
    assert send("success", other.token, output="no json") == "InvalidOutput"


def test_parameters_and_secrets_belong_to_a_region(aws: Aws) -> None:
    aws.directory.parameters["eu-central-1", "/a"] = "1"
    aws.directory.secrets["eu-central-1", "s"] = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:s"
    assert boto3.client("ssm").get_parameter(Name="/a")["Parameter"]["Value"] == "1"
    assert refused(boto3.client("ssm", region_name="eu-west-1").get_parameter, Name="/a") == "ParameterNotFound"
    assert boto3.client("secretsmanager").describe_secret(SecretId="s")["ARN"].endswith(":secret:s")
    there = boto3.client("secretsmanager", region_name="eu-west-1")
    assert refused(there.describe_secret, SecretId="s") == "ResourceNotFoundException"


def test_a_batch_of_log_lines_has_an_order_and_a_size(aws: Aws) -> None:
    aws.logs.groups["/g"] = {}
    logs: Any = boto3.client("logs")
    stream = {"logGroupName": "/g", "logStreamName": "s"}
    lines = [{"timestamp": int(NOW * 1000) + number, "message": "x"} for number in range(3)]
    assert refused(logs.put_log_events, **stream, logEvents=lines) == "ResourceNotFoundException"
    logs.create_log_stream(**stream)
    assert refused(logs.create_log_stream, **stream) == "ResourceAlreadyExistsException"
    logs.put_log_events(**stream, logEvents=lines)
    assert refused(logs.put_log_events, **stream, logEvents=lines[::-1]) == "InvalidParameterException"
    big = [{"timestamp": int(NOW * 1000), "message": "x" * 262_000}] * 5
    assert refused(logs.put_log_events, **stream, logEvents=big) == "InvalidParameterException"
    old = logs.put_log_events(**stream, logEvents=[{"timestamp": 1, "message": "x"}])
    assert old["rejectedLogEventsInfo"]["tooOldLogEventEndIndex"] == 1
    assert len(aws.logs.groups["/g"]["s"]) == 3


# Events, faults and time


def heard(fake: Aws) -> list[Event]:
    found: list[Event] = []
    fake.events.targets.append((lambda _: True, found.append))
    return found


def test_an_instance_tells_of_its_states_by_id_alone(aws: Aws) -> None:
    events, made = heard(aws), ids(launch(nodes=1))
    aws.clock.run(20)
    assert [event["detail"] for event in events] == [
        {"instance-id": made[0], "state": "pending"},
        {"instance-id": made[0], "state": "running"},
    ]


def test_events_are_lost_doubled_and_out_of_order_as_the_weather_has_it(aws: Aws) -> None:
    events = heard(aws)
    delays = iter([[], [30.0], [1.0, 60.0]])
    aws.events.weather = lambda _: next(delays)
    for key in ("lost", "late", "doubled"):
        aws.events.publish("aws.states", "Something happened", {"what": key})
    aws.clock.run(90)
    assert [event["detail"]["what"] for event in events] == ["doubled", "late", "doubled"]


def test_a_throttled_call_has_no_effect_and_is_asked_again_with_a_pause(aws: Aws) -> None:
    aws.faults.add(Kind.THROTTLED, "s3:PutObject")
    boto3.client("s3").put_object(Bucket=BUCKET, Key="a", Body=b"1")
    assert len(aws.calls) == 1
    assert aws.clock.now > NOW + 2 * CALL_S


def test_what_befalls_one_region_befalls_no_other() -> None:
    aws = deployed(places=(PLACE, ABROAD))
    aws.mishaps.append([Mishap("ec2:*", times=9, region=ABROAD.region, fault=Kind.UNREACHABLE)])
    with aws.connected():
        assert boto3.client("ec2", config=ONCE).describe_instances()["Reservations"] == []
        with pytest.raises(ConnectTimeoutError):
            boto3.client("ec2", region_name=ABROAD.region, config=ONCE).describe_instances()


def test_instances_of_two_regions_never_share_an_id() -> None:
    aws = deployed(places=(PLACE, ABROAD))
    assert len({ec2.name("i") for ec2 in aws.ec2.values() for _ in range(3)}) == 6
