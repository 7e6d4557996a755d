"""Prices a ladder, estimates a job's cost, and judges a cap on it. Facts in, verdicts out: no call of AWS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from contract.jobs import Job, Market, Rung
from contract.money import HOUR_S, hourly_usd, least_s, up_to_cents
from contract.timing import Timing
from job_checks.facts import RegionFacts
from job_checks.ladder import Ladder
from job_checks.resolve import ResolvedRequest
from job_checks.role_ladder import average
from job_checks.volumes import Disk, SizedRequest
from job_requests.request import JobRequest
from job_requests.values import Buying

LONG_SPOT_HOURS = 2.0
"""On spot, a job that is longer has to commit checkpoints often enough."""
MOST_LOST = 0.25
"""The share of a spot job's hours that may pass between two checkpoints."""
MOST_PRICED = 1_000_000
"""Nodes. More are refused for their number, and have no price that a float can be."""
LEAST_PAID_HOURS = 1.0
"""A cap has to pay for all nodes for so long, or for the job's hours where these are fewer; never for less than a launch is worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What the money of a request is judged by."""

    nodes: int
    hours: float
    cap_usd: float | None
    timing: Timing

    @property
    def least_hours(self) -> float:
        return max(min(LEAST_PAID_HOURS, self.hours), least_s(self.timing) / HOUR_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedRequest:
    """A request whose places have prices and are paid for: nothing is missing but the verdict."""

    resolved: ResolvedRequest
    ladder: Ladder
    """Without places that the cap does not pay for."""
    disk: Disk
    disk_problems: list[str]
    money_problems: list[str]


def add_prices(sized: SizedRequest) -> PricedRequest:
    """Prices every place, and leaves out those that the cap does not pay for. No place of a reservation is left out: a cap beside a
    reservation is a problem of its own."""
    resolved, disk = sized.resolved, sized.disk
    request = resolved.request
    rungs = _price_rungs(sized.ladder.rungs, resolved.facts.regions, disk)
    ladder = replace(sized.ladder, rungs=rungs)
    if request.reservation is None and request.nodes <= MOST_PRICED:
        budget = Budget(
            nodes=request.nodes, hours=resolved.hours, cap_usd=request.max_cost_usd, timing=resolved.env.timing
        )
        ladder = _drop_dear(ladder, budget)
    return PricedRequest(
        resolved=resolved,
        ladder=ladder,
        disk=disk,
        disk_problems=sized.disk_problems,
        money_problems=_check_money(request, resolved.hours),
    )


def _price_rungs(rungs: Sequence[Rung], facts: Mapping[str, RegionFacts], disk: Disk) -> tuple[Rung, ...]:
    """Returns the rungs with what an hour of a node costs at most: on-demand, on spot too, with its root volume. A reservation is paid for
    whether or not the job runs, so that its rungs have no price."""

    def most(rung: Rung) -> float | None:
        region = facts[rung.region]
        hour = region.on_demand.get(rung.instance_type)
        if hour is None or region.volumes is None or rung.reservation:
            return None
        return hour + region.volumes.hourly_usd(gb=disk.gb, iops=disk.iops, throughput=disk.throughput)

    def price(rung: Rung) -> Rung:
        if not rung.shapes:
            return replace(rung, most_usd=most(rung))
        shapes = tuple(replace(one, rung=price(one.rung)) for one in rung.shapes)
        return replace(rung, shapes=shapes, most_usd=average(shapes, lambda one: one.most_usd))

    return tuple(map(price, rungs))


def _drop_dear(ladder: Ladder, budget: Budget) -> Ladder:
    """Returns the ladder without places that the cap cannot pay for, or whose price is not known; a problem where none is left."""
    cap = budget.cap_usd
    if cap is None or not ladder.rungs:
        return ladder
    against = {rung: _explain_dear(rung, budget, cap) for rung in ladder.rungs}
    kept = tuple(rung for rung, why in against.items() if not why)
    reasons = tuple(dict.fromkeys(why for why in against.values() if why))
    if kept:
        return replace(ladder, rungs=kept, left_out=(*ladder.left_out, *(f"max_cost_usd: {why}" for why in reasons)))
    return replace(ladder, rungs=(), problems=(*ladder.problems, *_describe_cap(reasons, ladder.rungs, budget)))


def _explain_dear(rung: Rung, budget: Budget, cap: float) -> str:
    """Why the cap rules the place out; empty where it does not."""
    hourly = hourly_usd(budget.nodes, rung)
    if hourly is None:
        return f"the price of {rung.instance_type} in {rung.region} is not known"
    if hourly * budget.least_hours <= cap:
        return ""
    return (
        f"${cap:g} pays for {cap / hourly * 60:.1f} min of {_count_nodes(budget.nodes, rung)} (${hourly:.2f} an hour)"
    )


def _describe_cap(reasons: Sequence[str], rungs: Sequence[Rung], budget: Budget) -> list[str]:
    hours = [hourly for rung in rungs if (hourly := hourly_usd(budget.nodes, rung)) is not None]
    least = (
        f"${up_to_cents(min(hours) * budget.least_hours):.2f} or more, which pays for {budget.least_hours:.3g} h"
        if hours
        else ""
    )
    return [f"max_cost_usd: {why}; allowed: {least or 'types that have a price in the Price List'}" for why in reasons]


def _check_money(request: JobRequest, hours: float) -> list[str]:
    """Rejects a market or a cap beside a reservation, and spot with rare checkpoints, whatever the prices are."""
    found = []
    if request.reservation is not None and request.market is not Buying.ON_DEMAND:
        found.append(
            f"reservation: the request has market {request.market.value} too, and nodes of a reservation are never spot; "
            "allowed: a reservation without a market"
        )
    if request.max_cost_usd is not None and request.reservation is not None:
        found.append(
            "max_cost_usd: AWS bills a reservation whether or not the job runs, so that a cap saves nothing; "
            "allowed: no cap beside a reservation"
        )
    minutes = request.checkpoint_minutes
    most = MOST_LOST * hours * 60
    if Market.SPOT in request.market.markets and hours > LONG_SPOT_HOURS and minutes > most:
        lost = min(minutes / 60, hours) * request.nodes
        found.append(
            f"checkpoint_minutes: a job of {hours:g} h on spot that commits every {minutes:g} min loses up to {lost:.1f} node-hours of "
            f"{hours * request.nodes:.1f} whenever AWS takes a node back; allowed: {most:g} or less on spot, a quarter of max_hours"
        )
    return found


def estimate_cost(job: Job) -> dict[str, object]:
    """Says before the launch what the job costs: the dearest and the first place, for all hours of the job, and the minutes in which nodes
    end themselves if nothing else ends them.

    `usd_at_most` is no more than the cap where there is one, and "unknown" where a price is not known.
    """
    known = [hourly for rung in job.ladder if (hourly := hourly_usd(job.nodes, rung)) is not None]
    if not known or len(known) < len(job.ladder):
        return {"usd_at_most": job.max_cost_usd or "unknown", "words": _describe_cost(job)}
    hours = max(known) * (job.max_hours + job.timing.power_off_after_deadline_s / HOUR_S)
    most = hours if job.max_cost_usd is None else min(hours, job.max_cost_usd)
    return {"usd_at_most": up_to_cents(most), "words": _describe_cost(job)}


def _describe_cost(job: Job) -> str:
    first = job.ladder[0]
    hourly = hourly_usd(job.nodes, first)
    if hourly is None:
        return f"The price of {_count_nodes(job.nodes, first)} in {first.zone} is unknown."
    said = f"{_count_nodes(job.nodes, first)} in {first.zone} cost ${hourly:.2f} an hour at most with their disks"
    if first.market is Market.SPOT and first.usd is not None:
        said += f" (${first.usd * job.nodes:.2f} without them at the current spot price)"
    said += f", and ${hourly * job.max_hours:.2f} in {job.max_hours:g} h"
    if job.max_cost_usd is not None and job.max_cost_usd < hourly * job.max_hours:
        hours = job.max_cost_usd / hourly - job.timing.power_off_after_deadline_s / HOUR_S
        said += f"; max_cost_usd ends the job after {hours:.1f} h"
    return f"{said}. Data transfer, S3 and logs are not counted."


def _count_nodes(nodes: int, rung: Rung) -> str:
    return f"{nodes} node{'s' if nodes > 1 else ''} of {rung.instance_type}"
