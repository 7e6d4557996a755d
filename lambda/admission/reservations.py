"""Makes the ladder of a request that names a Capacity Reservation or a Capacity Block: nothing is tried beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from admission.images import is_allowed
from admission.ladder import MOST_RUNGS, Ladder, RegionFacts, View, asked_regions, not_allowed, region_problems
from admission.request import JobRequest
from admission.values import Buying
from aws.facts import Reservation
from aws.times import utc
from contract import tags
from contract.environments import AdmissionEnvironment
from contract.jobs import Market, Rung
from refusals.wording import plain

COMING = frozenset({"active", "scheduled", "pending", "assessing", "delayed"})
"""States of a reservation that can be used, or that will be."""
LINUX, SHARED = "Linux/UNIX", "default"
MOST_TOLD = 50
"""So many reasons against the reservations of a group are told."""
TENTHS = 10
"""Of an hour, in which people are told how long something may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the job needs of a reservation, beside what the request says itself."""

    account: str
    hours: float
    """For how long the job may run."""
    now: float
    """UTC epoch seconds."""


def reserved(request: JobRequest, facts: Mapping[str, RegionFacts], env: AdmissionEnvironment, wish: Wish) -> Ladder:
    """Lists the reservation, or each of a resource group that can run the job, the one that begins first before the others.

    `problems` are the reasons against every one where none can; else they stand in `left_out`. All nodes run in one reservation.
    """
    rungs, against = list[Rung](), list[str]()
    regions = [region for region in asked_regions(request, env) if region in facts]
    every = [(region, one) for region in regions for one in facts[region].reservations]
    for region, one in every:
        view = View(request, region, facts[region], env, usable=True)
        problems = (
            region_problems(request, region, facts[region], env)
            or _against(one, request, facts[region], env, wish)
            or _against_its_type(one.instance_type, view, env)
        )
        against += problems
        if not problems:
            rungs.append(_rung(one, view, wish))
    if not every:
        where = ", ".join(asked_regions(request, env))
        against.append(
            f"reservation: {plain(request.reservation or '')} is not in {where}, or holds no reservation; "
            "allowed: one of the account, in a region that the request names"
        )
    rungs.sort(key=lambda one: (request.instance_types.index(one.instance_type), one.begins_at))
    told = _shortened(list(dict.fromkeys(against)))
    if len(rungs) > MOST_RUNGS:
        told.append(f"{len(rungs) - MOST_RUNGS} reservations that begin later or are named later")
    return Ladder(
        rungs=tuple(rungs[:MOST_RUNGS]), problems=() if rungs else tuple(told), left_out=tuple(told) if rungs else ()
    )


def _shortened(told: list[str]) -> list[str]:
    more = len(told) - MOST_TOLD
    return [*told[:MOST_TOLD], f"{more} more reservations"] if more > 0 else told


def problems(request: JobRequest) -> list[str]:
    """Rejects a market beside a reservation: what is reserved is paid for, and nothing else is bought."""
    if request.reservation is None or request.market is Buying.ON_DEMAND:
        return []
    return [
        f"reservation: market {request.market.value} is there too, and nodes of a reservation are not bought as spot; "
        "allowed: a reservation without a market"
    ]


def _rung(one: Reservation, view: View, wish: Wish) -> Rung:
    image = view.image(one.instance_type)
    assert image is not None
    return Rung(
        region=one.region,
        zone=one.zone,
        instance_type=one.instance_type,
        market=_market(one),
        image=image,
        # A block has its nodes close together, and a reservation's own placement group is none of ours.
        cluster=False,
        reservation=one.id,
        begins_at=one.begins_at if one.begins_at > wish.now else 0.0,
        ends_at=one.ends_at,
    )


def _market(one: Reservation) -> Market:
    if one.block:
        return Market.CAPACITY_BLOCK
    return Market.INTERRUPTIBLE if one.interruptible else Market.RESERVATION


def _against(
    one: Reservation, request: JobRequest, facts: RegionFacts, env: AdmissionEnvironment, wish: Wish
) -> list[str]:
    """The first thing that stands against the reservation."""
    zones = [zone.name for zone in facts.place.zones] if facts.place else []
    reasons = (
        (one.owner != wish.account, f"belongs to the account {one.owner}; allowed: one of this account"),
        (
            one.deployment != env.deployment,
            f"has no tag {tags.DEPLOYMENT}={env.deployment}; allowed: a reservation with this tag, which says that jobs may use it",
        ),
        (one.state not in COMING, f"is {one.state}; allowed: one that is active or will be"),
        (one.platform != LINUX, f"is for {one.platform}; allowed: one for {LINUX}"),
        (one.tenancy != SHARED, f"has the tenancy {one.tenancy}; allowed: one with the tenancy {SHARED}"),
        (
            one.instance_type not in request.instance_types,
            f"is of {one.instance_type}; allowed: one of a type of the request ({', '.join(request.instance_types)})",
        ),
        (one.zone not in zones, f"is in {one.zone}; allowed: one in a zone of the deployment ({', '.join(zones)})"),
        (
            one.total < request.nodes,
            f"has {one.total} instances, fewer than nodes; allowed: one with {request.nodes} at least",
        ),
    )
    told = [words for applies, words in reasons if applies] or _against_its_time(one, request, wish)
    return [f"reservation: {one.id} {words}" for words in told[:1]]


def _against_its_time(one: Reservation, request: JobRequest, wish: Wish) -> list[str]:
    begins = max(wish.now, one.begins_at)
    later = (begins - wish.now) / 3600
    if later > request.max_wait_hours:
        return [f"begins at {utc(begins)}; allowed: max_wait_hours of {_up(later)} at least, or one that has begun"]
    if one.ends_at is None or (fits := (one.ends_at - begins) / 3600) >= wish.hours:
        return []
    return [
        f"lets {_down(fits)} hours fit before {utc(one.ends_at)}, when AWS begins to end its nodes, half an hour before the block ends; "
        f"allowed: max_hours of {_down(fits)} at most, or a block that ends later"
    ]


def _against_its_type(name: str, view: View, env: AdmissionEnvironment) -> list[str]:
    return view.problems(name) if is_allowed(name, env.limits) else [not_allowed(name, env)]


def _down(hours: float) -> str:
    return f"{max(0, math.floor(hours * TENTHS) / TENTHS):g}"


def _up(hours: float) -> str:
    return f"{math.ceil(hours * TENTHS) / TENTHS:g}"
