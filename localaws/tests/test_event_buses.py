"""Events that a rule sends to the bus of another region, S3's events, which are late and never lost, and events that nobody may forge."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from localaws.account import DEPLOYER
from localaws.iam.account import Account
from localaws.iam.questions import requests
from localaws.server import LocalAws
from localaws.testing.calm import CALM, meanwhile
from localaws.testing.waiting import until
from localaws.tests.services import allows

pytestmark = pytest.mark.rehearsal
HOME, AWAY = "eu-central-1", "us-east-1"
BUS = f"arn:aws:events:{HOME}:123456789012:event-bus/default"
EVENTS = "events.amazonaws.com"
THINGS = {"source": ["test"]}
UPLOADS = {"source": ["aws.s3"], "detail-type": ["Object Created"]}


class Heard:
    """A queue that a rule of the home region fills, and what a test does to have it filled."""

    def __init__(self, aws: LocalAws) -> None:
        self.aws = aws
        self.queue, self.letters = self._queue("heard"), self._queue("letters")

    def _queue(self, name: str) -> str:
        arn = f"arn:aws:sqs:{HOME}:123456789012:{name}"
        policy = json.dumps(allows(EVENTS, "sqs:SendMessage", arn))
        made = self.aws.client("sqs", HOME).create_queue(QueueName=name, Attributes={"Policy": policy})
        return str(made["QueueUrl"])

    def arn(self, url: str) -> str:
        return f"arn:aws:sqs:{HOME}:123456789012:{url.rpartition('/')[2]}"

    def rule(self, region: str, pattern: dict[str, Any], **target: Any) -> None:
        events = self.aws.client("events", region)
        events.put_rule(Name="r", EventPattern=json.dumps(pattern))
        events.put_targets(Rule="r", Targets=[{"Id": "t", **target}])

    def role(self, service: str = EVENTS) -> str:
        trust = json.dumps(allows(service, "sts:AssumeRole", "*"))
        made = self.aws.client("iam").create_role(RoleName="sender", AssumeRolePolicyDocument=trust)
        return str(made["Role"]["Arn"])

    def receive(self, url: str = "") -> list[dict[str, Any]]:
        sqs = self.aws.client("sqs", HOME)
        found = sqs.receive_message(
            QueueUrl=url or self.queue, MaxNumberOfMessages=10, MessageAttributeNames=["All"], VisibilityTimeout=0
        )
        return list(found.get("Messages", []))

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(one["Body"]) for one in self.receive()]


@pytest.fixture
def heard() -> Iterator[Heard]:
    with LocalAws(replace(CALM, event_delay_s=(0.0, 1.0))) as aws:
        made = Heard(aws)
        made.rule(HOME, {"detail-type": ["Thing", "Object Created"]}, Arn=made.arn(made.queue))
        yield made


def bucket(aws: LocalAws, region: str) -> Any:
    """A client of a region with a bucket of events there."""
    s3 = aws.client("s3", region)
    there = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    s3.create_bucket(Bucket="data", **there)
    s3.put_bucket_notification_configuration(Bucket="data", NotificationConfiguration={"EventBridgeConfiguration": {}})
    return s3


def test_a_rule_sends_what_it_matches_to_another_regions_bus_as_it_was(heard: Heard) -> None:
    role = heard.role()
    heard.rule(AWAY, THINGS, Arn=BUS, RoleArn=role)
    heard.aws.emit("test", "Thing", {"kind": "apple"}, ["arn:aws:s3:::data"], AWAY)
    heard.aws.emit("other", "Thing", {}, [], AWAY)
    (event,) = until(heard.events)
    assert (event["region"], event["detail"], event["resources"]) == (AWAY, {"kind": "apple"}, ["arn:aws:s3:::data"])
    (call,) = heard.aws.recorder.of(name="events:PutEvents")
    assert (call.role, call.region, call.session) == (role, HOME, EVENTS)


def test_the_right_that_such_a_rule_needs_is_that_on_the_bus(heard: Heard) -> None:
    heard.rule(AWAY, THINGS, Arn=BUS, RoleArn=heard.role())
    heard.aws.emit("test", "Thing", {"long": "x" * 1000}, [], AWAY)
    until(heard.events)
    (call,) = heard.aws.recorder.of(name="events:PutEvents")
    (wanted,) = requests(call, cast(Account, None))
    assert (wanted.action, wanted.resource) == ("events:PutEvents", BUS)


@pytest.mark.parametrize("service", ["lambda.amazonaws.com", ""])
def test_a_rule_whose_role_eventbridge_may_not_take_leaves_a_letter(heard: Heard, service: str) -> None:
    role = heard.role(service) if service else "arn:aws:iam::123456789012:role/nobody"
    letters = {"DeadLetterConfig": {"Arn": heard.arn(heard.letters)}}
    heard.rule(AWAY, THINGS, Arn=BUS, RoleArn=role, **letters)
    heard.aws.emit("test", "Thing", {"kind": "pear"}, [], AWAY)
    (letter,) = until(lambda: heard.receive(heard.letters))
    assert json.loads(letter["Body"])["detail"] == {"kind": "pear"}
    assert letter["MessageAttributes"]["ERROR_CODE"]["StringValue"] == "NO_PERMISSIONS"
    assert heard.events() == []
    assert heard.aws.recorder.of(name="events:PutEvents") == []


def test_an_object_of_another_region_is_heard_of_at_home(heard: Heard) -> None:
    heard.rule(AWAY, UPLOADS, Arn=BUS, RoleArn=heard.role())
    bucket(heard.aws, AWAY).put_object(Bucket="data", Key="campaigns/_READY", Body=b"")
    (event,) = until(heard.events)
    assert (event["region"], event["detail"]["object"]["key"]) == (AWAY, "campaigns/_READY")


def test_where_every_event_is_lost_those_of_s3_are_late(heard: Heard) -> None:
    s3 = bucket(heard.aws, HOME)
    with meanwhile(heard.aws, events_lost=1.0):
        s3.put_object(Bucket="data", Key="one", Body=b"")
        heard.aws.emit("test", "Thing", {}, [], HOME)
        events = until(heard.events)
    assert [one["source"] for one in events] == ["aws.s3"]
    assert [one["source"] for one in heard.aws.lost_events] == ["test"]


def test_events_of_s3_arrive_twice_as_others_do(heard: Heard) -> None:
    s3 = bucket(heard.aws, HOME)
    with meanwhile(heard.aws, events_doubled=1.0):
        s3.put_object(Bucket="data", Key="one", Body=b"")
    events = until(lambda: len(found := heard.events()) == 2 and found)
    assert len({one["id"] for one in events}) == 1


def test_nobody_can_forge_an_event_of_aws(heard: Heard) -> None:
    wrong = {"Source": "aws.s3", "DetailType": "Thing", "Detail": '{"bucket": {"name": "data"}}'}
    right = {**wrong, "Source": "test"}
    for person in (DEPLOYER, heard.role()):
        answer = heard.aws.client("events", HOME, role=person).put_events(Entries=[wrong, right])
        assert [one.get("ErrorCode") for one in answer["Entries"]] == ["NotAuthorizedForSourceException", None]
        assert answer["FailedEntryCount"] == 1
    events = until(lambda: len(found := heard.events()) == 2 and found)
    assert {one["source"] for one in events} == {"test"}
