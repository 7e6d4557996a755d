"""Zones of a region, looked up at deploy: those that every account may use, the same for as long as the answer stands."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from contract import names
from localaws.services.ec2_zones import zone_shown
from tests.fakes.aws import Aws
from tests.fakes.cloudformation import CloudFormation
from tests.fakes.faults import Kind, Mishap
from tests.fakes.functions import Functions
from tests.fakes.yard import deployed, home
from zone_lookup.policy import NoAnswer, chosen, identity, kept, remembered

REGION = "eu-central-1"
A, B, C, D, E, F = SIX = tuple(f"{REGION}{letter}" for letter in "abcdef")
DESCRIBE = "ec2:DescribeAvailabilityZones"
MADE_UP = "yard-region-eu-central-1-Zones-1A2B3C4D5E6F"
"""Of CloudFormation, for a resource whose creation nobody answered."""


@dataclass(frozen=True)
class Answer:
    """Of the function to CloudFormation."""

    physical: str
    zones: tuple[str, ...]
    reason: str


@dataclass
class Yard:
    """A region whose stack is being deployed."""

    aws: Aws
    cloudformation: CloudFormation

    def names(self, *zones: str, further: tuple[dict[str, str], ...] = ()) -> None:
        """What EC2 names from now on, in this order."""
        catalogue = home(self.aws).catalogue
        catalogue.zones, catalogue.further = zones, tuple(zone_shown(REGION, **one) for one in further)

    def ask(self, kind: str, count: int, before: str = "", *mishaps: Mishap) -> Answer:
        known = {"PhysicalResourceId": before} if kind != "Create" else {}
        request = self.cloudformation.request(kind, {"Count": str(count)}, stack=f"yard-region-{REGION}") | known
        functions = Functions(self.aws)
        with functions.installed():
            assert functions.invoke("zone_lookup", request, mishaps).error == ""
        answer = self.cloudformation.answers[-1]
        assert answer["Status"] == ("FAILED" if answer["Reason"] else "SUCCESS")
        data = answer.get("Data", {})
        assert list(data) == [names.zone_attribute(number) for number in range(1, len(data) + 1)]
        return Answer(answer["PhysicalResourceId"], tuple(data.values()), answer["Reason"])

    @property
    def looks(self) -> int:
        return sum(call.name == DESCRIBE for call in self.aws.calls)


@pytest.fixture
def yard(cloudformation: CloudFormation) -> Yard:
    made = Yard(deployed(), cloudformation)
    made.names(*SIX)
    return made


# Create


def test_the_answer_has_as_many_zones_as_were_asked_for(yard: Yard) -> None:
    assert yard.ask("Create", 6).zones == SIX
    assert yard.ask("Create", 3).zones == (A, B, C)


def test_zones_come_by_name_in_whatever_order_ec2_names_them(yard: Yard) -> None:
    answers = []
    for order in (SIX, SIX[::-1], (D, A, F, C, B, E)):
        yard.names(*order)
        answers.append(yard.ask("Create", 4))
    assert {answer.zones for answer in answers} == {(A, B, C, D)}
    assert len({answer.physical for answer in answers}) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"ZoneName": "eu-central-1-ham-1a", "ZoneType": "local-zone", "OptInStatus": "opted-in"},
        {"ZoneName": "eu-central-1-wl1-ber-wlz-1", "ZoneType": "wavelength-zone", "OptInStatus": "opted-in"},
        {"ZoneName": C, "State": "impaired"},
        {"ZoneName": C, "State": "unavailable"},
        {"ZoneName": C, "OptInStatus": "not-opted-in"},
    ],
    ids=lambda zone: " ".join(zone.values()),
)
def test_no_subnet_lies_in_a_zone_that_is_not_for_every_instance_or_not_there(
    yard: Yard, other: dict[str, str]
) -> None:
    yard.names(A, B, further=(other,))
    refused = yard.ask("Create", 3)
    assert "names 2 availability zones" in refused.reason
    assert other["ZoneName"] not in refused.reason
    yard.names(A, B, D, further=(other,))
    assert yard.ask("Create", 3).zones == (A, B, D)


def test_too_few_zones_fail_the_deploy_with_how_many_there_are_and_what_to_do(yard: Yard) -> None:
    yard.names(C, A)
    answer = yard.ask("Create", 3)
    assert answer.reason == (
        "EC2 names 2 availability zones of eu-central-1 for this account (eu-central-1a, eu-central-1c), and its network is laid "
        "out for 3. Name the zones to use as `zones` of eu-central-1 in the settings (docs/guides/regions.md)."
    )
    assert answer.zones == ()


def test_no_zone_at_all_fails_the_deploy(yard: Yard) -> None:
    yard.names()
    assert "names 0 availability zones of eu-central-1 for this account (none)" in yard.ask("Create", 3).reason


@pytest.mark.parametrize("kind", [Kind.DENIED, Kind.UNREACHABLE, Kind.THROTTLED])
def test_an_ec2_that_does_not_answer_fails_the_deploy_at_once(yard: Yard, kind: Kind) -> None:
    begun = yard.aws.clock.now
    answer = yard.ask("Create", 3, "", Mishap(DESCRIBE, times=math.inf, fault=kind))
    assert answer.reason
    assert answer.zones == ()
    assert remembered(answer.physical) == ()
    assert yard.aws.clock.now - begun < 120


# Update


def test_an_update_with_the_same_number_keeps_the_zones_whatever_ec2_names(yard: Yard) -> None:
    before = yard.ask("Create", 3)
    for zones in ((D, E, F), (A, B), ()):
        yard.names(*zones)
        assert yard.ask("Update", 3, before.physical) == before


def test_an_update_with_the_same_number_needs_no_ec2(yard: Yard) -> None:
    before = yard.ask("Create", 3)
    outage = Mishap(DESCRIBE, times=math.inf, fault=Kind.ERROR)
    assert yard.ask("Update", 3, before.physical, outage) == before
    assert yard.looks == 1


def test_an_update_with_more_zones_adds_them_at_the_end(yard: Yard) -> None:
    yard.names(B, D, E)
    before = yard.ask("Create", 3)
    yard.names(*SIX)
    after = yard.ask("Update", 6, before.physical)
    assert after.zones == (B, D, E, A, C, F)
    assert remembered(after.physical) == after.zones


def test_a_rollback_to_fewer_zones_has_those_of_before_though_one_has_gone(yard: Yard) -> None:
    before = yard.ask("Create", 3)
    more = yard.ask("Update", 6, before.physical)
    yard.names(B, C, D, E, F)
    assert yard.ask("Update", 3, more.physical) == before


def test_more_zones_are_refused_while_one_has_gone_and_nothing_is_forgotten(yard: Yard) -> None:
    before = yard.ask("Create", 3)
    yard.names(A, C, D, E, F)
    refused = yard.ask("Update", 4, before.physical)
    assert "Subnets of eu-central-1 lie in eu-central-1b, which EC2 does not name as available" in refused.reason
    assert "Name the zones to use as `zones`" in refused.reason
    assert refused.physical == before.physical
    assert yard.ask("Update", 3, refused.physical) == before


def test_more_zones_than_there_are_are_refused_and_nothing_is_forgotten(yard: Yard) -> None:
    yard.names(A, B, C)
    before = yard.ask("Create", 3)
    refused = yard.ask("Update", 4, before.physical)
    assert "names 3 availability zones" in refused.reason
    assert refused.physical == before.physical


def test_an_update_of_what_was_never_answered_looks(yard: Yard) -> None:
    for before in (MADE_UP, identity(())):
        assert yard.ask("Update", 3, before).zones == (A, B, C)


# Delete


@pytest.mark.parametrize("before", [identity((A, B, C)), identity(()), MADE_UP])
def test_a_destroy_does_nothing_and_never_fails(yard: Yard, before: str) -> None:
    answer = yard.ask("Delete", 3, before, Mishap("*", times=math.inf, fault=Kind.DENIED))
    assert answer == Answer(before, (), "")
    assert yard.aws.calls == []


# The policy alone


def test_an_answer_is_remembered_by_its_identity_and_nothing_else_is() -> None:
    assert remembered(identity((C, A))) == (C, A)
    assert [remembered(one) for one in (identity(()), MADE_UP, "", "eu-central-1a,eu-central-1b")] == [()] * 4


def test_too_little_remembered_asks_for_a_look() -> None:
    assert kept(3, (A, B)) is None
    assert kept(3, ()) is None
    assert kept(2, (B, A, C)) == (B, A)


def test_no_zone_is_answered_twice() -> None:
    assert chosen(REGION, 3, (C,), [C, A, A, B]) == (C, A, B)
    with pytest.raises(NoAnswer):
        chosen(REGION, 3, (), [A, A, B])
