"""The order in which places, types and markets are tried, and what happens to those that cannot be."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from aws.facts import InstanceType
from contract.environments import AdmissionEnvironment
from contract.errors import InvalidRequest
from contract.jobs import Market, Rung
from contract.places import Place, Zone
from job_checks.facts import Execution, RegionFacts, RequestFacts
from job_checks.ladder import MOST_RUNGS, Ladder, build_ladder
from job_checks.resolve import resolve
from job_requests.reading import read
from job_requests.request import JobRequest
from tests.builders import ADMISSION, IMAGE, NOW, PLACE
from tests.fakes.faults import Kind
from tests.fakes.functions import TIMEOUTS
from tests.fakes.yard import ABROAD, home
from tests.functions.admission.account import Account, start
from tools.refusals.jobs import LEAST
from tools.refusals.jobs.reservation import OURS

HOME, AWAY = PLACE.region, ABROAD.region
EVERYWHERE = replace(ADMISSION, regions=(AWAY, HOME))
NAMES = ("g5.xlarge", "g4dn.xlarge")
KINDS = {name: InstanceType(name=name, architectures=("x86_64",), cluster=True) for name in NAMES}


def region(place: Place = PLACE, **changes: Any) -> RegionFacts:
    zones = {zone.name for zone in place.zones}
    facts = RegionFacts(place=place, types=KINDS, zones=dict.fromkeys(KINDS, zones), images={"x86_64": IMAGE})
    return replace(facts, **changes)


FACTS = {HOME: region(), AWAY: region(ABROAD)}
EXECUTION = Execution(
    arn="arn:aws:states:eu-central-1:123456789012:execution:yard-train:job-1", name="job-1", started_at=NOW
)


def ladder(request: JobRequest, facts: dict[str, RegionFacts], env: AdmissionEnvironment) -> Ladder:
    return build_ladder(resolve(request, EXECUTION, RequestFacts(regions=facts), env)).ladder


def tried(facts: dict[str, RegionFacts] = FACTS, **fields: Any) -> list[Rung]:
    request, problems = read({**LEAST, "instance_types": list(NAMES), **fields}, EVERYWHERE.limits)
    assert problems == []
    found = ladder(request, facts, EVERYWHERE)
    assert found.problems == ()
    return list(found.rungs)


def problems(facts: dict[str, RegionFacts] = FACTS, **fields: Any) -> tuple[str, ...]:
    request, wrong = read({**LEAST, "instance_types": list(NAMES), **fields}, EVERYWHERE.limits)
    assert wrong == []
    return ladder(request, facts, EVERYWHERE).problems


def left_out(facts: dict[str, RegionFacts], **fields: Any) -> tuple[str, ...]:
    request, _ = read({**LEAST, "instance_types": list(NAMES), **fields}, EVERYWHERE.limits)
    return ladder(request, facts, EVERYWHERE).left_out


def test_one_region_is_tried_zone_by_zone_and_type_by_type() -> None:
    places = [(one.instance_type, one.zone) for one in tried()]
    assert places == [(name, zone.name) for name in NAMES for zone in PLACE.zones]


def test_auto_tries_home_before_the_others_where_prices_are_not_known() -> None:
    assert [one.region for one in tried(regions="auto", instance_types=["g5.xlarge"])] == [HOME] * 3 + [AWAY]


def test_regions_are_tried_in_the_order_of_the_request_where_prices_are_not_known() -> None:
    assert next(one.region for one in tried(regions=[AWAY, HOME])) == AWAY


def test_the_users_order_of_types_comes_before_every_price() -> None:
    cheap = dict(zip(NAMES, (9.0, 0.1), strict=True))
    facts = {HOME: region(on_demand=cheap), AWAY: region(ABROAD, on_demand=cheap)}
    names = [one.instance_type for one in tried(facts, regions="auto")]
    assert names == [NAMES[0]] * 4 + [NAMES[1]] * 4


def test_of_one_type_the_cheaper_region_comes_first() -> None:
    facts = {HOME: region(on_demand={"g5.xlarge": 1.2}), AWAY: region(ABROAD, on_demand={"g5.xlarge": 1.0})}
    rungs = tried(facts, regions="auto", instance_types=["g5.xlarge"])
    assert [(one.region, one.usd) for one in rungs] == [(AWAY, 1.0), *[(HOME, 1.2)] * 3]


def test_of_spot_the_cheaper_zone_comes_first_and_one_of_unknown_price_last() -> None:
    a, b, c = (zone.name for zone in PLACE.zones)
    facts = {HOME: region(spot={("g5.xlarge", c): 0.2, ("g5.xlarge", b): 0.3})}
    rungs = tried(facts, market="spot", instance_types=["g5.xlarge"])
    assert [(one.zone, one.usd) for one in rungs] == [(c, 0.2), (b, 0.3), (a, None)]


def test_spot_alone_never_becomes_on_demand() -> None:
    assert {one.market for one in tried(market="spot", regions="auto")} == {Market.SPOT}


def test_spot_then_on_demand_tries_every_place_of_a_type_on_spot_first_however_dear() -> None:
    dear = {(name, zone.name): 99.0 for name in NAMES for zone in PLACE.zones}
    rungs = tried({HOME: region(spot=dear, on_demand=dict.fromkeys(NAMES, 0.1))}, market="spot-then-on-demand")
    kinds = list(dict.fromkeys((one.instance_type, one.market) for one in rungs))
    assert kinds == [(name, market) for name in NAMES for market in (Market.SPOT, Market.ON_DEMAND)]


def test_a_type_that_one_of_the_regions_lacks_is_tried_in_the_other() -> None:
    facts = {HOME: region(types={"g5.xlarge": KINDS["g5.xlarge"]}), AWAY: region(ABROAD)}
    assert {(one.instance_type, one.region) for one in tried(facts, regions=[HOME, AWAY])} == {
        ("g5.xlarge", HOME), ("g5.xlarge", AWAY), ("g4dn.xlarge", AWAY),
    }  # fmt: skip


def test_a_type_that_no_region_has_is_refused_with_each_reason_once() -> None:
    facts = {HOME: region(types={}), AWAY: region(ABROAD, types={})}
    found = problems(facts, regions="auto", instance_types=["g5.xlarge"])
    assert found == (
        f"instance_types: g5.xlarge does not exist in {HOME}; allowed: EC2 types that the region has",
        f"instance_types: g5.xlarge does not exist in {AWAY}; allowed: EC2 types that the region has",
    )


def test_a_region_of_the_request_in_which_nothing_can_run_is_refused_and_auto_leaves_it_out() -> None:
    facts = {HOME: region(), AWAY: region(ABROAD, zones={})}
    (line,) = problems(facts, regions=[HOME, AWAY])
    assert line.startswith(f"regions: {AWAY}: none of its zones offers any of instance_types")
    assert problems(facts, regions="auto") == ()
    assert left_out(facts, regions="auto") == (f"{AWAY}: none of its zones offers any of instance_types",)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"place": None}, "has no Region stack that trains"),
        ({"place": Place(region=AWAY, bucket="b")}, "has no zones"),
        ({"place": replace(ABROAD, security_groups=(), security_group="")}, "names no security group"),
        ({"volume_key": "arn:aws:kms:eu-west-1:1:key/own"}, "encrypts volumes under a key of its own"),
        (
            {"place": None, "silent": "EndpointConnectionError"},
            f"could not ask AWS about {AWAY} (EndpointConnectionError)",
        ),
    ],
)
def test_a_region_that_cannot_train_is_refused_by_name_and_auto_leaves_it_out(
    changes: dict[str, Any], words: str
) -> None:
    facts = {HOME: region(), AWAY: replace(region(ABROAD), **changes)}
    assert any(words in line for line in problems(facts, regions=[HOME, AWAY]))
    assert problems(facts, regions="auto") == ()
    (told,) = left_out(facts, regions="auto")
    assert told.startswith(f"{AWAY}: ")
    assert words in told
    assert {one.region for one in tried(facts, regions="auto")} == {HOME}


@pytest.mark.parametrize(
    ("market", "markets"),
    [
        ("spot", {Market.SPOT}),
        ("spot-then-on-demand", {Market.SPOT, Market.ON_DEMAND}),
        ("on-demand", {Market.ON_DEMAND}),
    ],
)
def test_spot_is_tried_where_disks_are_under_a_key_of_the_region(market: str, markets: set[Market]) -> None:
    """The key's policy, or a grant, lets AWS's role for spot use it."""
    facts = {HOME: replace(region(), place=replace(PLACE, volume_key="arn:aws:kms:eu-central-1:123456789012:key/own"))}
    assert problems(facts, market=market) == ()
    assert {one.market for one in tried(facts, market=market)} == markets


def test_auto_is_refused_with_every_reason_where_no_region_can_train() -> None:
    facts = {HOME: RegionFacts(place=None), AWAY: RegionFacts(place=None, silent="ReadTimeoutError")}
    found = problems(facts, regions="auto")
    assert any(f"{HOME} has no Region stack" in line for line in found)
    assert any(f"Admit could not ask AWS about {AWAY}" in line for line in found)


def test_a_disk_that_is_too_small_for_one_image_is_refused_although_another_region_would_do() -> None:
    facts = {HOME: region(), AWAY: region(ABROAD, images={"x86_64": replace(IMAGE, snapshot_gb=300)})}
    (line,) = problems(facts, regions="auto", volume_gb=200)
    assert "volume_gb: 200 is too small" in line


def test_a_very_long_ladder_keeps_the_cheapest_places_of_each_type_and_market() -> None:
    zones = tuple(Zone(name=f"eu-central-1-{number}", subnet=f"subnet-{number}") for number in range(200))
    spot = {(name, zone.name): float(len(zones) - number) for name in NAMES for number, zone in enumerate(zones)}
    facts = {HOME: region(replace(PLACE, zones=zones), spot=spot)}
    rungs = tried(facts, market="spot-then-on-demand")
    assert len(rungs) == MOST_RUNGS
    share = MOST_RUNGS // 4
    assert [one.usd for one in rungs[:share]] == [float(number + 1) for number in range(share)]
    assert left_out(facts, market="spot-then-on-demand") == (f"{4 * len(zones) - MOST_RUNGS} dearer places",)


@pytest.fixture
def two_regions(there: Account, monkeypatch: pytest.MonkeyPatch) -> Account:
    monkeypatch.setenv("TRAINYARD_REGIONS", json.dumps([HOME, AWAY]))
    return there


def test_region_and_regions_together_are_refused(two_regions: Account) -> None:
    with pytest.raises(InvalidRequest, match="regions: the request has region too; allowed: one of the two"):
        start({**LEAST, "region": HOME, "regions": [AWAY]})
    assert two_regions.changes == []


def test_auto_asks_every_training_region_and_the_job_has_a_place_in_each(two_regions: Account) -> None:
    admitted = start({**LEAST, "regions": "auto"})
    job = two_regions.job("job-1")
    assert job is not None
    assert set(job.places) == {HOME, AWAY}
    assert two_regions.regions("ec2") == {HOME, AWAY}
    assert admitted["left_out"] == []


def test_admit_shows_the_price_of_each_place_and_the_order_follows_it(two_regions: Account) -> None:
    home(two_regions).spot_prices = {("g5.xlarge", zone.name): 0.5 for zone in PLACE.zones}
    two_regions.ec2[AWAY].spot_prices = {("g5.xlarge", ABROAD.zones[0].name): 0.125}
    admitted = start({**LEAST, "regions": "auto", "market": "spot", "instance_types": ["g5.xlarge"]})
    assert admitted["ladder"][0] == f"g5.xlarge in {ABROAD.zones[0].name}, spot, $0.1250 an hour"


def test_prices_that_nobody_tells_keep_no_job_from_starting(two_regions: Account) -> None:
    two_regions.faults.add(Kind.DENIED, "ec2:DescribeSpotPriceHistory", times=100)
    two_regions.faults.add(Kind.DENIED, "pricing:GetProducts", times=100)
    start({**LEAST, "regions": "auto", "market": "spot-then-on-demand"})
    job = two_regions.job("job-1")
    assert job is not None
    assert {one.usd for one in job.ladder} == {None}


def test_a_spot_price_history_that_hangs_keeps_no_job_from_starting(two_regions: Account) -> None:
    two_regions.faults.add(Kind.LOST, "ec2:DescribeSpotPriceHistory", times=10_000)
    request = {**LEAST, "regions": [HOME, AWAY], "market": "spot-then-on-demand"}
    before = two_regions.clock.now
    start({**request, "instance_types": ["g5.xlarge", "g4dn.xlarge", "g6.xlarge", "g5.12xlarge"]})
    assert two_regions.clock.now - before < TIMEOUTS["admission"]


def test_a_region_that_does_not_answer_keeps_auto_from_nothing_and_a_named_one_is_asked_again(
    two_regions: Account,
) -> None:
    two_regions.faults.add(Kind.DENIED, "ec2:DescribeInstanceTypes", times=100, region=AWAY)
    admitted = start({**LEAST, "regions": "auto"})
    (told,) = admitted["left_out"]
    assert f"Admit could not ask AWS about {AWAY}" in told
    with pytest.raises(Exception, match="UnauthorizedOperation"):
        start({**LEAST, "regions": [HOME, AWAY]}, "job-2")


@pytest.mark.parametrize("silent", ["*", HOME], ids=["every region", "the only one that has it"])
@pytest.mark.parametrize(
    "wanted",
    [
        {"instance_types": ["g6.xlarge"]},
        {"instance_types": ["g5.xlarge"], "reservation": OURS},
        {"accelerators": "L4:1"},
    ],
    ids=["types", "reservation", "accelerators"],
)
def test_what_only_a_silent_region_may_have_is_asked_for_again_and_not_refused(
    two_regions: Account, silent: str, wanted: dict[str, object]
) -> None:
    """The machine tries Admit again for some minutes; a refusal would be for good, and say what nobody knows."""
    nowhere = {(name, zone.name) for name in ("g6.xlarge", "g6.8xlarge") for zone in ABROAD.zones}
    two_regions.ec2[AWAY].catalogue.not_offered |= nowhere
    two_regions.faults.add(Kind.THROTTLED, "ec2:*", times=10_000, region="" if silent == "*" else silent)
    request = {name: value for name, value in LEAST.items() if name != "instance_types"}
    with pytest.raises(ClientError, match="RequestLimitExceeded"):
        start({**request, **wanted, "regions": "auto"})


def test_spot_prices_are_not_asked_for_where_they_decide_nothing(there: Account) -> None:
    start(LEAST)
    assert there.find_params("ec2:DescribeSpotPriceHistory") == []
