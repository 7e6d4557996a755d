"""What IAM is asked for a call to DynamoDB: which keys, by whom; and what a policy that binds keys to the caller lets through."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from localaws.iam.permissions import judge
from localaws.iam.questions import Untaught
from localaws.iam.simulator import Policies
from localaws.recorder import Call, Recorder, Session
from localaws.testing.asking import OWNER, ROLE_ID, Account, questions_of

REGION = "eu-central-1"
TABLE = f"arn:aws:dynamodb:{REGION}:{OWNER}:table/yard"
ROLE = f"arn:aws:iam::{OWNER}:role/x"
INSTANCE = "i-0123456789abcdef0"
OWN = f"{ROLE_ID}:{INSTANCE}"
OTHER = f"{ROLE_ID}:i-0aaaaaaaaaaaaaaaa"
ACTIONS = ["PutItem", "GetItem", "DeleteItem", "Query", "BatchGetItem"]


def key(pk: str) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": "s"}}


def calls(pk: str) -> dict[str, dict[str, Any]]:
    """A call of each kind for a key."""
    return {
        "PutItem": {"TableName": "yard", "Item": {**key(pk), "doc": {"S": "{}"}}},
        "GetItem": {"TableName": TABLE, "Key": key(pk)},
        "DeleteItem": {"TableName": "yard", "Key": key(pk)},
        "Query": {
            "TableName": "yard",
            "KeyConditionExpression": "begins_with(sk, :s) AND #p = :own",
            "ExpressionAttributeNames": {"#p": "pk"},
            "ExpressionAttributeValues": {":own": {"S": pk}, ":s": {"S": "s"}},
        },
        "BatchGetItem": {"RequestItems": {"yard": {"Keys": [key(pk)]}}},
        "TransactWriteItems": {"TransactItems": [{"Put": {"TableName": "yard", "Item": key(pk)}}]},
    }


def policy(**condition: Any) -> dict[str, Policies]:
    statement = {"Effect": "Allow", "Action": [f"dynamodb:{one}" for one in ACTIONS], "Resource": TABLE}
    return {ROLE: {"own": {"Version": "2012-10-17", "Statement": [{**statement, "Condition": condition}]}}}


BOUND = policy(**{"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["${aws:userid}"]}})


def build_call(name: str, session: str = INSTANCE, /, **parameters: Any) -> Call:
    return Call(
        at=0.0,
        role=ROLE,
        service="dynamodb",
        region=REGION,
        action=name,
        parameters=parameters,
        by=Session(role=ROLE, name=session),
    )


def allowed(policies: dict[str, Policies], *made: Call) -> list[bool]:
    """Whether each call would be allowed. No key of the context may be one that IAM never fills in."""
    verdicts = judge(made, policies, Account())
    assert [one for one in verdicts if one.answer.error or one.answer.ignored] == []
    return [one.answer.allowed for one in verdicts]


@pytest.mark.parametrize("name", [*ACTIONS, "TransactWriteItems"])
def test_a_call_is_asked_for_its_table_its_keys_and_its_caller(name: str) -> None:
    (asked,) = questions_of(f"dynamodb:{name}", REGION, INSTANCE, **calls("node#1")[name])
    assert asked.action == ("dynamodb:PutItem" if name == "TransactWriteItems" else f"dynamodb:{name}")
    assert asked.resource == TABLE
    assert asked.context["dynamodb:LeadingKeys"] == ["node#1"]
    assert asked.context["aws:userid"] == OWN


@pytest.mark.parametrize("name", ACTIONS)
def test_a_caller_may_touch_what_lies_under_its_own_id_and_nothing_else(name: str) -> None:
    assert allowed(BOUND, build_call(name, **calls(OWN)[name])) == [True]
    for other in (OTHER, ROLE_ID, f"{OWN}#", "job#a"):
        assert allowed(BOUND, build_call(name, **calls(other)[name])) == [False]


def test_a_batch_with_one_key_of_somebody_else_is_denied_as_a_whole() -> None:
    both = {"yard": {"Keys": [key(OWN), {**key(OTHER)}]}}
    assert allowed(BOUND, build_call("BatchGetItem", RequestItems=both)) == [False]


def test_who_has_no_session_is_nobody_to_a_policy_that_names_the_caller() -> None:
    assert allowed(BOUND, build_call("GetItem", "", **calls(OWN)["GetItem"])) == [False]
    assert allowed(BOUND, build_call("GetItem", "function", **calls(OWN)["GetItem"])) == [False]


def test_a_function_may_touch_the_kinds_of_keys_that_its_policy_names() -> None:
    kinds = policy(**{"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["job#*", "grid#*"]}})
    assert allowed(kinds, build_call("PutItem", "worker", **calls("job#a")["PutItem"])) == [True]
    assert allowed(kinds, build_call("PutItem", "worker", **calls("node#a")["PutItem"])) == [False]


def test_a_stream_is_asked_for_by_its_arn() -> None:
    stream = f"{TABLE}/stream/2026-01-01T00:00:00.000"
    found = [
        *questions_of("dynamodb:DescribeStream", REGION, StreamArn=stream),
        *questions_of("dynamodb:GetShardIterator", REGION, StreamArn=stream),
        *questions_of("dynamodb:GetRecords", REGION, ShardIterator=f"{stream}|1|abc"),
    ]
    assert {one.resource for one in found} == {stream}
    assert [one.resource for one in questions_of("dynamodb:ListStreams", REGION)] == ["*"]


@pytest.mark.parametrize("name", ["Scan", "ExecuteStatement", "DeleteTable", "BatchWriteItem"])
def test_a_call_that_nobody_taught_is_an_error(name: str) -> None:
    with pytest.raises(Untaught, match=name):
        questions_of(f"dynamodb:{name}", REGION, TableName="yard")


def test_the_recorder_keeps_keys_whole_and_cuts_what_is_longer_than_any_key() -> None:
    recorder = Recorder(lambda _environ, start: [start("200 OK", [])] and [b"{}"])
    recorder.know("KEY", Session(role=ROLE, throttled=True, name=INSTANCE))
    long = "k" * 2048
    body = json.dumps({"TableName": "yard", "Item": {"pk": {"S": long}, "doc": {"S": "x" * 100_000}}}).encode()
    environ = {
        "REQUEST_METHOD": "POST",
        "HTTP_X_AMZ_TARGET": "DynamoDB_20120810.PutItem",
        "HTTP_AUTHORIZATION": f"AWS4-HMAC-SHA256 Credential=KEY/20260101/{REGION}/dynamodb/aws4_request, Signature=x",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
    }
    list(recorder(environ, lambda *_: None))
    (call,) = recorder.calls
    assert call.parameters["Item"]["pk"] == {"S": long}
    assert len(call.parameters["Item"]["doc"]["S"]) < 3000
    assert call.session == INSTANCE
