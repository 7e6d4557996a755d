"""Stacks that are created while others look at them: no look makes a resource."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from moto.s3.models import S3Backend

from localaws.conditions import Conditions
from localaws.server import LocalAws
from localaws.services import custom_resources
from localaws.testing.waiting import HANG_S

pytestmark = pytest.mark.rehearsal
TEMPLATE = {
    "Resources": {
        name: {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": name.lower()}} for name in ("First", "Second")
    },
    "Outputs": {name: {"Value": {"Ref": name}, "Export": {"Name": name}} for name in ("First", "Second")},
}


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws(Conditions(speed=100), gaps=("cloudformation",)) as started:
        yield started


LOOKS = {
    "describe_stacks": {"StackName": "both"},
    "describe_stack_resources": {"StackName": "both"},
    "list_stack_resources": {"StackName": "both"},
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_at_a_stack_that_is_being_created_makes_no_resource(
    aws: LocalAws, monkeypatch: pytest.MonkeyPatch, look: str
) -> None:
    stacks = aws.client("cloudformation", "eu-central-1")
    make, made, problems = S3Backend.create_bucket, list[str](), list[Exception]()

    def ask() -> None:
        try:
            getattr(aws.client("cloudformation", "eu-central-1"), look)(**LOOKS[look])
        except Exception as problem:
            problems.append(problem)

    def create_bucket(self: Any, name: str, *given: Any, **named: Any) -> Any:
        made.append(name)
        if len(made) == 1:
            asking = threading.Thread(target=ask)
            asking.start()
            asking.join(HANG_S)
        return make(self, name, *given, **named)

    monkeypatch.setattr(S3Backend, "create_bucket", create_bucket)
    stacks.create_stack(StackName="both", TemplateBody=json.dumps(TEMPLATE))
    (stack,) = stacks.describe_stacks(StackName="both")["Stacks"]
    assert (stack["StackStatus"], sorted(made), problems) == ("CREATE_COMPLETE", ["first", "second"], [])
    assert {one["OutputValue"] for one in stack["Outputs"]} == {"first", "second"}
    assert len(stacks.describe_stack_resources(StackName="both")["StackResources"]) == 2
    stacks.delete_stack(StackName="both")


def test_custom_resources_side_by_side_make_their_bucket_once(monkeypatch: pytest.MonkeyPatch) -> None:
    buckets, made, second = dict[str, str](), list[str](), threading.Event()

    def create_bucket(*, Bucket: str, **_: Any) -> None:  # noqa: N803  (botocore's name)
        made.append(Bucket)
        if len(made) > 1:
            second.set()
        second.wait(0.3)  # in which the other one arrives, if nothing holds it up
        buckets[Bucket] = Bucket

    s3 = SimpleNamespace(create_bucket=create_bucket, generate_presigned_url=lambda *_, **__: "https://there")
    backends = {"1": {"aws": SimpleNamespace(buckets=buckets)}}
    monkeypatch.setattr(custom_resources, "s3_backends", backends)
    aws: Any = SimpleNamespace(account="1", client=lambda *_, **__: s3)
    asked = [
        threading.Thread(target=custom_resources._address, args=(aws, "eu-central-1", "answers", f"{one}"))
        for one in (1, 2)
    ]
    for one in asked:
        one.start()
    for one in asked:
        one.join(HANG_S)
    assert made == ["answers"]


class LateAnswer:
    """A local AWS at a speed of 120, and the clock of CloudFormation: a function answers after so many seconds of this computer."""

    def __init__(self, after_s: float) -> None:
        self.now, self.after_s = 0.0, after_s
        self.account, self.conditions = "1", Conditions(speed=120.0)
        self.stopping = SimpleNamespace(wait=self._wait)
        self.keys = SimpleNamespace(get=self._find)

    def monotonic(self) -> float:
        return self.now

    def _wait(self, _seconds: float) -> bool:
        self.now += 1.0
        return False

    def _find(self, _key: str) -> Any:
        return SimpleNamespace(value=b'{"Status": "SUCCESS"}') if self.now >= self.after_s else None


@pytest.mark.parametrize(("after_s", "comes"), [(1.0, True), (299.0, True), (301.0, False)])
def test_a_custom_resource_is_waited_for_in_seconds_of_this_computer_at_any_speed(
    after_s: float, comes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws: Any = LateAnswer(after_s)
    monkeypatch.setattr(custom_resources, "time", aws)
    buckets = {"answers": SimpleNamespace(keys=aws.keys)}
    monkeypatch.setattr(custom_resources, "s3_backends", {"1": {"aws": SimpleNamespace(buckets=buckets)}})
    if comes:
        assert custom_resources._answer(aws, "answers", "key", 300.0) == {"Status": "SUCCESS"}
    else:
        with pytest.raises(custom_resources.Failed, match="did not receive a response"):
            custom_resources._answer(aws, "answers", "key", 300.0)


@pytest.mark.parametrize(("speed", "grace_s"), [(1.0, 30.0), (3.0, 10.0), (30.0, 5.0), (400.0, 5.0)])
def test_a_process_has_seconds_to_end_at_any_speed(speed: float, grace_s: float) -> None:
    assert Conditions(speed=speed).grace(30.0) == grace_s
