"""What becomes of a request that names a reservation; what is rejected is in the table of refusals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from contract.errors import InvalidRequest
from contract.jobs import Market, Rung
from job_checks.ladder import MOST_RUNGS
from job_checks.reservations import MOST_REASONS
from tests.builders import NOW, PLACE
from tests.fakes.faults import Kind
from tests.fakes.yard import ABROAD, home
from tests.functions.admission.account import Account, account, start
from tools.refusals.jobs import LEAST
from tools.refusals.jobs.reservation import BLOCK, GROUP, INTERRUPTIBLE, LATER, OTHER_ZONE, OURS, UNKNOWN

HOUR = 3600.0


@pytest.fixture
def there() -> Iterator[Account]:
    with account() as opened:
        yield opened


def ladder(there: Account, **fields: object) -> tuple[Rung, ...]:
    start({**LEAST, **fields})
    job = there.job("job-1")
    assert job is not None
    return job.ladder


def test_a_reservation_is_the_whole_ladder(there: Account) -> None:
    (rung,) = ladder(there, reservation=OURS, nodes=4)
    assert (rung.reservation, rung.market, rung.zone) == (OURS, Market.RESERVATION, "eu-central-1a")
    assert (rung.begins_at, rung.ends_at) == (0.0, None)


def test_nodes_of_a_reservation_get_none_of_our_placement_groups(there: Account) -> None:
    assert ladder(there, nodes=4)[0].cluster
    start({**LEAST, "nodes": 4, "reservation": OURS}, "reserved")
    job = there.job("reserved")
    assert job is not None
    assert not job.ladder[0].cluster


def test_a_blocks_nodes_begin_to_end_half_an_hour_before_it_does(there: Account) -> None:
    (rung,) = ladder(there, reservation=BLOCK, max_hours=12)
    assert (rung.market, rung.ends_at) == (Market.CAPACITY_BLOCK, NOW + 12 * HOUR)


def test_a_block_that_begins_later_is_taken_where_the_job_may_wait_for_it(there: Account) -> None:
    (rung,) = ladder(there, reservation=LATER, max_wait_hours=10, max_hours=24)
    assert (rung.begins_at, rung.ends_at) == (NOW + 10 * HOUR, NOW + 57.5 * HOUR)


@pytest.mark.usefixtures("there")
def test_of_a_block_that_begins_later_the_hours_count_from_its_beginning() -> None:
    with pytest.raises(InvalidRequest, match=r"leaves 47\.5 hours"):
        start({**LEAST, "reservation": LATER, "max_wait_hours": 10, "max_hours": 48})


def test_an_interruptible_reservation_is_launched_as_such(there: Account) -> None:
    assert [one.market for one in ladder(there, reservation=INTERRUPTIBLE)] == [Market.INTERRUPTIBLE]


def test_a_group_is_every_reservation_of_it_that_can_run_the_job_and_the_rest_is_told(there: Account) -> None:
    output = start({**LEAST, "reservation": f"{GROUP}h100s", "max_hours": 6})
    job = there.job("job-1")
    assert job is not None
    assert [one.reservation for one in job.ladder] == [OURS, BLOCK, INTERRUPTIBLE]
    told = output["left_out"]
    assert len(told) == 8
    assert any(f"{OTHER_ZONE} is in eu-central-1z" in line for line in told)


def test_a_group_of_which_no_reservation_can_run_the_job_is_refused_with_every_reason(there: Account) -> None:
    with pytest.raises(InvalidRequest) as problem:
        start({**LEAST, "reservation": f"{GROUP}h100s", "nodes": 16})
    assert str(problem.value).count("reservation: cr-") == 11
    assert there.changes == []


def test_a_group_is_asked_for_in_its_own_region_alone(there: Account) -> None:
    start({**LEAST, "reservation": f"{GROUP}h100s", "regions": "auto", "max_hours": 6})
    assert there.regions("resource-groups") == {PLACE.region}


def test_a_reservation_of_a_group_that_ec2_has_forgotten_keeps_nobody_from_the_others(there: Account) -> None:
    """A group goes on naming what was deleted long ago, and one unknown id fails the question for all."""
    there.directory.groups[f"{GROUP}old"] = (UNKNOWN, OURS)
    assert [one.reservation for one in ladder(there, reservation=f"{GROUP}old")] == [OURS]


def test_a_group_of_another_account_is_refused_and_nobody_asks_for_it(there: Account) -> None:
    there.faults.add(Kind.DENIED, "resource-groups:*", times=100)
    with pytest.raises(InvalidRequest, match="allowed: one of the account"):
        start({**LEAST, "reservation": GROUP.replace("123456789012", "999999999999") + "h100s"})
    assert there.regions("resource-groups") == set()


def test_of_a_large_group_as_many_reservations_are_tried_as_of_any_ladder_and_the_rest_is_told(there: Account) -> None:
    many = [f"cr-{number:017x}" for number in range(1000, 1000 + MOST_RUNGS + 60)]
    ours = home(there).reservations[OURS]
    home(there).reservations |= {one: replace(ours, id=one) for one in many}
    there.directory.groups[f"{GROUP}large"] = tuple(many)
    output = start({**LEAST, "reservation": f"{GROUP}large"})
    assert len(output["ladder"]) == MOST_RUNGS
    assert output["left_out"] == ["60 reservations that begin later or are named later"]


def test_what_stands_against_the_reservations_of_a_large_group_is_told_in_part(there: Account) -> None:
    bad = [f"cr-{number:017x}" for number in range(1000, 1300)]
    ours = home(there).reservations[OURS]
    home(there).reservations |= {one: replace(ours, id=one, tags={}) for one in bad}
    there.directory.groups[f"{GROUP}large"] = (*bad, OURS)
    told = start({**LEAST, "reservation": f"{GROUP}large"})["left_out"]
    assert len(told) == MOST_REASONS + 1
    assert told[-1] == f"{300 - MOST_REASONS} more reservations"


def test_a_reservation_is_looked_for_in_every_region_of_the_request(there: Account) -> None:
    home(there).reservations.clear()
    with pytest.raises(InvalidRequest, match=f"is not in {PLACE.region}, {ABROAD.region}"):
        start({**LEAST, "reservation": OURS, "regions": [PLACE.region, ABROAD.region]})


def test_nobody_asks_for_prices_of_what_is_paid_for(there: Account) -> None:
    start({**LEAST, "reservation": OURS, "regions": "auto"})
    assert there.find_params("ec2:DescribeSpotPriceHistory") == []
    assert there.regions("pricing") == set()


def test_nobody_asks_for_reservations_where_none_is_named(there: Account) -> None:
    start(LEAST)
    assert there.find_params("ec2:DescribeCapacityReservations") == []


def test_a_type_that_the_deployment_does_not_allow_is_refused_in_a_reservation_too(there: Account) -> None:
    home(there).reservations[OURS].instance_type = "m5.large"
    with pytest.raises(InvalidRequest, match=r"m5\.large is not allowed in this deployment"):
        start({**LEAST, "instance_types": ["m5.large"], "reservation": OURS})


@pytest.mark.usefixtures("there")
def test_the_ladder_says_which_reservation_and_until_when() -> None:
    output = start({**LEAST, "reservation": BLOCK, "max_hours": 2})
    assert output["ladder"] == [
        f"g5.xlarge in eu-central-1a, capacity-block {BLOCK}, until 2027-01-15 20:00:00 UTC",
    ]
