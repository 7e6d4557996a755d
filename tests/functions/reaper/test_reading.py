"""The cut clients read from an answer what the whole one reads of it, and nothing is held that is all right."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import boto3
import pytest
from botocore import UNSIGNED
from botocore.awsrequest import AWSResponse
from botocore.config import Config

from aws.belongings import Belongings, Page, moment, tagged
from aws.clients import client
from aws.facts import Moment, Sort
from aws.service_models import narrow
from aws.trainings import RUNS, Trainings
from contract import tags
from reaper.marks import Section
from reaper.owners import Owners
from reaper.policy import Rules
from reaper.scan import Scan
from tests.builders import NOW
from tests.fakes.reaping import ENVIRONMENT
from tests.functions.reaper.reaped import OURS, reaped

HEAD = '<{0}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>0</requestId>{1}</{0}Response>'
TAGS = f"""<item><key>{tags.DEPLOYMENT}</key><value>yard</value></item><item><key>{tags.JOB}</key><value>a &amp; b</value></item>
<item><key>{tags.DEADLINE}</key><value>1800000000</value></item><item><key>{tags.PROTECTED}</key><value/></item>"""
ANSWERS = {
    "DescribeInstances": f"""<reservationSet><item><reservationId>r-1</reservationId><ownerId>1</ownerId><instancesSet><item>
<instanceId>i-1</instanceId><imageId>ami-1</imageId><instanceState><code>16</code><name>running</name></instanceState>
<instanceType>g5.xlarge</instanceType><launchTime>2027-01-15T06:00:00.000Z</launchTime><placement><tenancy>default</tenancy>
</placement><tagSet>{TAGS}</tagSet><iamInstanceProfile><arn>arn:p</arn><id>A</id></iamInstanceProfile></item>
<item><instanceId>i-2</instanceId></item></instancesSet></item></reservationSet>""",
    "DescribeVolumes": f"""<volumeSet><item><volumeId>vol-1</volumeId><status>available</status>
<createTime>2027-01-15T06:00:00.000Z</createTime><tagSet>{TAGS}</tagSet></item></volumeSet>""",
    "DescribeSpotInstanceRequests": f"""<spotInstanceRequestSet><item><spotInstanceRequestId>sir-1</spotInstanceRequestId>
<state>open</state><createTime>2027-01-15T06:00:00.000Z</createTime><tagSet>{TAGS}</tagSet></item>
<item><spotInstanceRequestId>sir-2</spotInstanceRequestId><instanceId>i-1</instanceId></item></spotInstanceRequestSet>""",
    "DescribeNetworkInterfaces": f"""<networkInterfaceSet><item><networkInterfaceId>eni-1</networkInterfaceId>
<status>available</status><tagSet>{TAGS}</tagSet></item></networkInterfaceSet>""",
}


def _answer(request: Any, event_name: str, **_: Any) -> AWSResponse:
    name = event_name.rsplit(".", 1)[-1]
    raw = io.BytesIO(HEAD.format(name, ANSWERS[name]).encode())
    raw.stream = lambda **_: iter([raw.getvalue()])  # type: ignore[attr-defined]
    headers = {"Date": "Fri, 15 Jan 2027 08:00:00 GMT"}
    return AWSResponse(request.url, 200, headers, raw)  # type: ignore[arg-type]


def _read(made: Any) -> dict[str, list[Page]]:
    made.meta.events.register("before-send", _answer)
    with mock.patch.object(narrow, "client", return_value=made):
        here = Belongings("eu-central-1")
        wanted = tagged("yard")
        return {
            "instances": list(here.instances(wanted)),
            "volumes": list(here.volumes(wanted)),
            "requests": list(here.spot_requests(wanted)),
            "interfaces": list(here.interfaces(wanted)),
        }


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    """The cut client and a whole one."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    narrow.client.cache_clear()
    whole = boto3.session.Session().client("ec2", region_name="eu-central-1", config=Config(signature_version=UNSIGNED))
    yield narrow.client("ec2", "eu-central-1"), whole
    narrow.client.cache_clear()
    client.cache_clear()


def test_the_cut_client_reads_what_the_whole_one_reads(sessions: tuple[Any, Any]) -> None:
    cut, whole = map(_read, sessions)
    assert cut == whole
    (page,) = cut["instances"]
    first, second = page.things
    assert (first.id, first.state, first.deployment, first.job, first.protected) == (
        "i-1",
        "running",
        "yard",
        "a & b",
        True,
    )
    assert (first.born_at, first.profile, first.instance_type) == (1_799_992_800.0, "arn:p", "g5.xlarge")
    assert (second.born_at, second.deployment, second.protected) == (None, None, False)
    assert page.moment == Moment(earliest=1_800_000_000.0, latest=1_800_000_000.0)
    assert [one.id for one in cut["requests"][0].things] == ["sir-1"]
    assert cut["interfaces"][0].things[0].sort is Sort.INTERFACE


def _training(request: Any, **_: Any) -> AWSResponse:
    summary = {
        "TrainingJobName": "yard-sweep-0",
        "TrainingJobArn": "arn:aws:sagemaker:eu-central-1:123456789012:training-job/yard-sweep-0",
        "TrainingJobStatus": "InProgress",
        "CreationTime": 1799992800.25,
    }
    raw = io.BytesIO(json.dumps({"TrainingJobSummaries": [summary]}).encode())
    raw.stream = lambda **_: iter([raw.getvalue()])  # type: ignore[attr-defined]
    return AWSResponse(request.url, 200, {}, raw)  # type: ignore[arg-type]


def test_sagemakers_times_are_numbers_and_read_as_the_whole_client_reads_them(sessions: tuple[Any, Any]) -> None:
    assert sessions
    whole = boto3.session.Session().client(
        "sagemaker", region_name="eu-central-1", config=Config(signature_version=UNSIGNED)
    )
    found = []
    for made in (narrow.client("sagemaker", "eu-central-1"), whole):
        made.meta.events.register("before-send", _training)
        found += [page for page, _ in Trainings("eu-central-1", made).listed("yard-", RUNS)]
    assert found[0] == found[1]
    assert [one.created_at for one in found[0]] == [1799992800.25]


@pytest.mark.parametrize("service", narrow.CALLS)
def test_a_cut_client_knows_no_other_call(sessions: tuple[Any, Any], service: str) -> None:
    assert sessions
    assert set(narrow.client(service, "eu-central-1").meta.method_to_api_mapping.values()) == set(narrow.CALLS[service])


def test_every_call_of_the_reaper_is_among_those_of_the_cut_client() -> None:
    """What the fake's whole client would let through."""
    with reaped() as yard:
        yard.instance(deadline=-3600)
        marks = yard.instance().tags
        for kind in ("vol", "sir", "eni"):
            yard.ec2.parts.leave(kind, marks, born_at=yard.now - 7200)
        yard.over()
        yard.run(2)
        assert {call.operation for call in yard.fake.calls if call.service == "ec2"} == set(narrow.CALLS["ec2"])


def test_a_time_that_nobody_can_read_is_no_time() -> None:
    for said in ("", "soon", "2027"):
        found = moment({"ResponseMetadata": {"HTTPHeaders": {"date": said}}})
        assert found.latest - found.earliest == 600.0


class Many:
    """A kind with 20,000 instances whose execution runs, made as they are asked for."""

    name, every_s, counted = "instances", 0.0, True

    def pages(self) -> Iterator[Page]:
        for number in range(20):
            yield Page(
                tuple(replace(OURS, id=f"i-{number}-{one}") for one in range(1000)), Moment(earliest=NOW, latest=NOW)
            )

    def again(self, ids: Sequence[str]) -> Page:
        raise AssertionError(ids)

    def end(self, ids: Sequence[str]) -> dict[str, str]:
        raise AssertionError(ids)


def test_what_is_all_right_is_not_held() -> None:
    with reaped():
        owners = Owners(ENVIRONMENT.machine, clock=lambda: NOW, has_time=lambda: True)
    owners._running = frozenset({OURS.execution})
    scan = Scan(Many(), "eu-central-1", Section())
    tracemalloc.start()
    try:
        scan.stream(owners, Rules.of(ENVIRONMENT), lambda: True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (scan.seen, scan.candidates, scan.late) == (20_000, [], [])
    assert peak < 3_000_000, "two pages of small facts"
