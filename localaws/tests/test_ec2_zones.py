"""Zones of the local EC2: it names more than those in which a node may run, and filters as EC2 does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from localaws import server
from localaws.conditions import Conditions
from localaws.server import LocalAws
from localaws.services import ec2
from localaws.testing.calm import refusal

pytestmark = pytest.mark.rehearsal
REGION = "us-east-1"
SIX = [f"{REGION}{letter}" for letter in "abcdef"]
LOCAL, WAVELENGTH = f"{REGION}-loc-1a", f"{REGION}-wl1-loc-wlz1-1"


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "GAPS", ())
        made = LocalAws(Conditions(throttled=0.0), gaps=("ec2",), work=tmp_path_factory.mktemp("zones"))
        with made:
            yield made
            ec2.machines().stop()


def named(aws: LocalAws, *filters: tuple[str, str], **arguments: Any) -> list[str]:
    wanted = [{"Name": name, "Values": [value]} for name, value in filters]
    answer = aws.client("ec2", REGION).describe_availability_zones(Filters=wanted, **arguments)
    return [one["ZoneName"] for one in answer["AvailabilityZones"]]


def test_without_a_filter_a_local_zone_is_among_them(aws: LocalAws) -> None:
    assert named(aws) == [LOCAL, *SIX]
    assert named(aws, ("opt-in-status", "opted-in")) == [LOCAL]


def test_a_zone_to_which_nobody_opted_in_shows_where_all_are_asked_for(aws: LocalAws) -> None:
    assert named(aws, AllAvailabilityZones=True) == [LOCAL, *SIX, WAVELENGTH]
    assert named(aws, ("opt-in-status", "not-opted-in"), AllAvailabilityZones=True) == [WAVELENGTH]
    assert named(aws, ("opt-in-status", "not-opted-in")) == []


def test_filters_hold_together(aws: LocalAws) -> None:
    assert named(aws, ("zone-type", "availability-zone")) == SIX
    assert named(aws, ("zone-type", "local-zone"), ("zone-name", SIX[0])) == []
    assert named(aws, ("state", "impaired")) == []
    assert named(aws, ZoneNames=[SIX[2]]) == [SIX[2]]


def test_a_filter_that_ec2_does_not_have_is_refused(aws: LocalAws) -> None:
    wanted = [{"Name": "zonetype", "Values": ["local-zone"]}]
    call = aws.client("ec2", REGION).describe_availability_zones
    assert refusal(call, Filters=wanted) == "InvalidParameterValue"
