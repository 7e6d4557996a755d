"""Prices of a ladder, estimates, caps, and plans that start nothing."""

from __future__ import annotations

from typing import Any

import pytest

from contract import money
from contract.errors import InvalidRequest
from contract.jobs import Job
from contract.money import HOUR_S
from tests.builders import JOB
from tests.fakes.faults import Kind
from tests.functions.admission.account import Account, start
from tools.refusals.jobs import LEAST

DISK = 0.08 * 100 / 720
"""An hour of 100 GB of gp3 at the fake's price."""
OFF_HOURS = JOB.timing.power_off_after_deadline_s / HOUR_S
"""How long nodes may run after the deadline until they end themselves."""


def admitted(there: Account, **fields: Any) -> Job:
    start({**LEAST, **fields})
    job = there.job("job-1")
    assert job is not None
    return job


def test_a_node_costs_its_hour_on_demand_and_its_disk_on_spot_too(there: Account) -> None:
    job = admitted(there, market="spot")
    assert [one.most_usd for one in job.ladder] == [pytest.approx(1.25 + DISK)] * len(job.ladder)


def test_a_faster_disk_costs_more(there: Account) -> None:
    plain = admitted(there).ladder[0].most_usd
    assert plain is not None
    larger = start({**LEAST, "volume_gb": 900}, "large")
    assert larger["estimate"]["usd_at_most"] > start(LEAST, "plain")["estimate"]["usd_at_most"]


@pytest.mark.usefixtures("there")
def test_the_estimate_is_for_all_hours_of_all_nodes() -> None:
    told = start({**LEAST, "nodes": 4, "max_hours": 10})["estimate"]
    assert told["usd_at_most"] == pytest.approx((40 + 4 * OFF_HOURS) * (1.25 + DISK), abs=0.01)
    assert "4 nodes of g5.xlarge in eu-central-1a cost $5.04 an hour at most with their disks" in told["words"]


@pytest.mark.usefixtures("there")
def test_the_estimate_of_a_job_with_a_cap_is_the_cap_and_says_when_it_ends() -> None:
    told = start({**LEAST, "max_hours": 100, "max_cost_usd": 20})["estimate"]
    assert told["usd_at_most"] == 20
    assert "max_cost_usd ends the job after 15.8 h" in told["words"]


@pytest.mark.parametrize("kind", [Kind.DENIED, Kind.UNREACHABLE])
def test_without_prices_a_job_without_a_cap_starts_and_its_cost_is_said_to_be_unknown(
    there: Account, kind: Kind
) -> None:
    there.faults.add(kind, "pricing:GetProducts", times=1000)
    assert start(LEAST)["estimate"]["usd_at_most"] == "unknown"


def test_prices_that_were_not_told_once_are_asked_for_again(there: Account) -> None:
    there.faults.add(Kind.DENIED, "pricing:GetProducts", times=2)
    assert start(LEAST)["estimate"]["usd_at_most"] == "unknown"
    assert start(LEAST, "job-2")["estimate"]["usd_at_most"] != "unknown"


@pytest.mark.parametrize("missing", ["instances", "disks"])
def test_a_cap_is_refused_where_it_could_not_be_kept(there: Account, missing: str) -> None:
    if missing == "disks":
        there.prices.volumes = None
    else:
        there.prices.hourly = {}
    with pytest.raises(InvalidRequest, match=r"the price of g5\.xlarge in eu-central-1 is not known"):
        start({**LEAST, "max_cost_usd": 500})
    assert there.changes == []


@pytest.mark.usefixtures("there")
def test_places_that_the_cap_cannot_pay_for_are_left_out_by_name() -> None:
    told = start({**LEAST, "instance_types": ["g5.xlarge", "g4dn.xlarge", "g5.12xlarge"], "max_cost_usd": 1})
    assert {line.split()[0] for line in told["ladder"]} == {"g4dn.xlarge"}
    assert [line for line in told["left_out"] if "g5.xlarge" in line and "$1 pays for" in line]
    assert [line for line in told["left_out"] if "the price of g5.12xlarge" in line]


def test_a_short_job_needs_money_for_its_own_hours_and_not_for_one(there: Account) -> None:
    assert admitted(there, max_hours=0.3, max_cost_usd=0.4).max_cost_usd == 0.4


@pytest.mark.usefixtures("there")
def test_a_cap_that_pays_for_no_launch_is_refused_however_short_the_job_is() -> None:
    with pytest.raises(
        InvalidRequest, match=r"pays for 9\.5 min of 1 node .* allowed: \$0\.32 or more, which pays for 0\.25 h"
    ):
        start({**LEAST, "max_hours": 0.1, "max_cost_usd": 0.2})


def test_the_least_cap_that_is_allowed_buys_a_launch(there: Account) -> None:
    job = admitted(there, max_hours=0.1, max_cost_usd=0.32)
    assert all(money.affords_s(job, rung, 0.0) >= money.least_s(job.timing) for rung in job.ladder)


def test_a_plan_has_the_ladder_and_the_price_and_changes_nothing(there: Account) -> None:
    told = start({**LEAST, "dry_run": True, "max_hours": 2})
    assert told["dry_run"] is True
    assert told["ladder"]
    assert told["estimate"]["usd_at_most"] == pytest.approx((2 + OFF_HOURS) * (1.25 + DISK), abs=0.01)
    assert (there.changes, there.job("job-1")) == ([], None)


@pytest.mark.usefixtures("there")
def test_a_wrong_plan_is_refused_as_the_job_would_be() -> None:
    with pytest.raises(InvalidRequest, match="nodes: 99 is too large"):
        start({**LEAST, "dry_run": True, "nodes": 99})


def test_a_job_after_its_plan_is_admitted(there: Account) -> None:
    start({**LEAST, "dry_run": True}, "plan")
    assert start(LEAST, "plan")["dry_run"] is False
    assert there.job("plan") is not None


@pytest.mark.parametrize(
    "fields",
    [
        {"market": "spot", "max_hours": 2, "checkpoint_minutes": 1440},
        {"market": "on-demand", "checkpoint_minutes": 1440},
        {"market": "spot", "checkpoint_minutes": 360},
    ],
    ids=["a short job", "on demand", "a quarter of its hours"],
)
def test_seldom_checkpoints_are_for_whoever_loses_little_by_them(there: Account, fields: dict[str, Any]) -> None:
    assert admitted(there, **fields).checkpoint_minutes == fields["checkpoint_minutes"]


@pytest.mark.usefixtures("there")
def test_spot_that_falls_back_on_demand_needs_checkpoints_as_well() -> None:
    with pytest.raises(InvalidRequest, match="loses up to 24"):
        start({**LEAST, "market": "spot-then-on-demand", "checkpoint_minutes": 1440})
