"""What AWS says of prices and capacity; a region that does not answer has no say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from aws import reservations
from aws.facts import Reservation
from contract.catalogue import CatalogueAccess
from contract.catalogue_environments import KeeperEnvironment
from keeper import asking
from keeper.market import CapacityRow
from tests.fakes.yard import deployed

HOME, AWAY, GRID = "eu-central-1", "eu-west-1", "us-west-2"
ENV = KeeperEnvironment(
    deployment="yard",
    bucket="b",
    regions=(HOME, AWAY, GRID),
    training=(HOME, AWAY),
    machine="m",
    grid_machine="g",
    messages="q",
    access=CatalogueAccess(cluster="c", secret="s"),
    cluster_id="cluster-1",
)
HELD = Reservation(
    id="cr-1",
    region=HOME,
    zone=f"{HOME}a",
    instance_type="p5.48xlarge",
    state="active",
    total=4,
    owner="123456789012",
    platform="Linux/UNIX",
    tenancy="default",
    deployment="yard",
    block=False,
    interruptible=False,
    begins_at=0.0,
    ends_at=None,
)


class Regions:
    """EC2 of regions of which one may be silent."""

    def __init__(self) -> None:
        self.silent = set[str]()
        self.held = [(HELD, 3)]

    def tagged(self, region: str, deployment: str, _config: object) -> list[tuple[Reservation, int]]:
        assert deployment == "yard"
        if region in self.silent:
            raise ClientError(
                {"Error": {"Code": "RequestLimitExceeded", "Message": ""}}, "DescribeCapacityReservations"
            )
        return self.held if region == HOME else []

    def spot_prices(self, region: str, types: Any) -> dict[tuple[str, str], float] | None:
        found = {("g5.xlarge", f"{region}a"): 0.6, ("g5.xlarge", f"{region}b"): 0.4}
        return None if region in self.silent else {place: usd for place, usd in found.items() if place[0] in types}


@pytest.fixture
def regions(monkeypatch: pytest.MonkeyPatch) -> Iterator[Regions]:
    made, aws = Regions(), deployed()
    aws.prices.hourly = {"g5.xlarge": 1.0}
    aws.prices.trainings = {"ml.g5.xlarge": 1.4}
    aws.prices.factors = dict.fromkeys(ENV.regions, 1.0)

    class Ec2:
        def __init__(self, region: str, _config: object) -> None:
            self.region = region

        def spot_prices(self, types: Any) -> Any:
            return made.spot_prices(self.region, types)

    monkeypatch.setattr(asking, "Ec2", Ec2)
    monkeypatch.setattr(reservations, "tagged", made.tagged)
    with aws.connected():
        yield made


def test_types_of_ec2_are_priced_where_nodes_run_and_those_of_sagemaker_everywhere(regions: Regions) -> None:
    found = asking.ask_market(ENV, ("g5.xlarge", "ml.g5.xlarge"))
    assert found.on_demand == {
        (HOME, "g5.xlarge"): 1.0,
        (AWAY, "g5.xlarge"): 1.0,
        (HOME, "ml.g5.xlarge"): 1.4,
        (AWAY, "ml.g5.xlarge"): 1.4,
        (GRID, "ml.g5.xlarge"): 1.4,
    }
    assert regions.silent == set()


def test_spot_costs_what_the_cheapest_zone_costs(regions: Regions) -> None:
    assert regions.silent == set()
    assert asking.ask_market(ENV, ("g5.xlarge",)).spot == {HOME: {"g5.xlarge": 0.4}, AWAY: {"g5.xlarge": 0.4}}


def test_a_type_without_a_price_has_no_row(regions: Regions) -> None:
    assert regions.silent == set()
    assert asking.ask_market(ENV, ("g9.xlarge",)).on_demand == {}


def test_a_silent_region_has_no_say_and_the_others_have_theirs(regions: Regions) -> None:
    regions.silent = {AWAY}
    found = asking.ask_market(ENV, ("g5.xlarge",))
    assert (found.spot.keys(), found.capacity.keys()) == ({HOME}, {HOME})
    assert found.capacity[HOME] == {
        "cr-1": CapacityRow(region=HOME, type="p5.48xlarge", kind="reservation", free=3, begins=None, ends=None)
    }


@pytest.mark.parametrize("state", ["expired", "cancelled", "failed", "payment-failed"])
def test_a_reservation_that_is_over_is_no_capacity(regions: Regions, state: str) -> None:
    regions.held = [(replace(HELD, state=state), 0)]
    assert asking.ask_market(ENV, ()).capacity[HOME] == {}
