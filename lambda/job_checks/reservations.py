"""Builds the ladder of a request that names a Capacity Reservation or a Capacity Block: nothing is tried beside it."""

from __future__ import annotations

import math

from aws.facts import Reservation
from aws.times import utc
from contract import tags
from contract.jobs import Market, Rung
from job_checks.ladder import MOST_RUNGS, Ladder, PlacedRequest
from job_checks.regions import ResolvedRegion
from job_checks.resolve import ResolvedRequest
from refusals.wording import plain

COMING = frozenset({"active", "scheduled", "pending", "assessing", "delayed"})
"""States of a reservation that can be used, or that will be."""
LINUX, SHARED = "Linux/UNIX", "default"
MOST_REASONS = 50
"""So many reasons against the reservations of a group a refusal names."""
TENTHS = 10
"""Of an hour, in which refusals say how long something may be."""


def build_reserved_ladder(resolved: ResolvedRequest) -> PlacedRequest:
    """Lists the reservation, or each of a resource group that can run the job, the one that begins first before the others.

    `problems` are the reasons against every one where none can; else they stand in `left_out`. All nodes run in one reservation.
    """
    request = resolved.request
    rungs, against = list[Rung](), list[str]()
    every = [(region, one) for region in resolved.regions if region.facts for one in region.facts.reservations]
    for region, one in every:
        reasons = region.against or _list_problems(one, region, resolved)
        against += reasons
        if not reasons:
            rungs.append(_describe_reservation(one, region, resolved.execution.started_at))
    if not every:
        where = ", ".join(region.name for region in resolved.regions)
        against.append(
            f"reservation: {plain(request.reservation or '')} is not in {where}, or holds no reservation; "
            "allowed: one of the account, in a region that the request names"
        )
    rungs.sort(key=lambda one: (request.instance_types.index(one.instance_type), one.begins_at))
    reasons = _shorten(list(dict.fromkeys(against)))
    if len(rungs) > MOST_RUNGS:
        reasons.append(f"{len(rungs) - MOST_RUNGS} reservations that begin later or are named later")
    ladder = Ladder(
        rungs=tuple(rungs[:MOST_RUNGS]),
        problems=() if rungs else tuple(reasons),
        left_out=tuple(reasons) if rungs else (),
    )
    return PlacedRequest(resolved=resolved, ladder=ladder)


def _shorten(reasons: list[str]) -> list[str]:
    more = len(reasons) - MOST_REASONS
    return [*reasons[:MOST_REASONS], f"{more} more reservations"] if more > 0 else reasons


def _describe_reservation(one: Reservation, region: ResolvedRegion, now: float) -> Rung:
    """Returns the rung; `now` is UTC epoch seconds."""
    image = region.offers[one.instance_type].image
    assert image is not None
    return Rung(
        region=one.region,
        zone=one.zone,
        instance_type=one.instance_type,
        market=_choose_market(one),
        image=image,
        # A block has its nodes close together, and a reservation's own placement group is none of ours.
        cluster=False,
        reservation=one.id,
        begins_at=one.begins_at if one.begins_at > now else 0.0,
        ends_at=one.ends_at,
    )


def _choose_market(one: Reservation) -> Market:
    if one.block:
        return Market.CAPACITY_BLOCK
    return Market.INTERRUPTIBLE if one.interruptible else Market.RESERVATION


def _list_problems(one: Reservation, region: ResolvedRegion, resolved: ResolvedRequest) -> list[str]:
    """Returns the first thing that stands against the reservation."""
    request, deployment = resolved.request, resolved.env.deployment
    zones = region.facts.our_zones if region.facts else ()
    reasons = (
        (one.owner != resolved.execution.account, f"belongs to the account {one.owner}; allowed: one of this account"),
        (
            one.deployment != deployment,
            f"has no tag {tags.DEPLOYMENT}={deployment}; allowed: a reservation with this tag, which says that jobs may use it",
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
            f"has {one.total} instances, and the job has {request.nodes} nodes; allowed: one with {request.nodes} at least",
        ),
    )
    found = [words for applies, words in reasons if applies] or _list_time_problems(one, resolved)
    if found:
        return [f"reservation: {one.id} {found[0]}"]
    forbidden = resolved.forbidden.get(one.instance_type)
    return [forbidden] if forbidden else region.offers[one.instance_type].problems


def _list_time_problems(one: Reservation, resolved: ResolvedRequest) -> list[str]:
    now = resolved.execution.started_at
    begins = max(now, one.begins_at)
    later = (begins - now) / 3600
    if later > resolved.request.max_wait_hours:
        return [
            f"begins at {utc(begins)}; allowed: max_wait_hours of {_round_up(later)} at least, or one that has begun"
        ]
    if one.ends_at is None or (fits := (one.ends_at - begins) / 3600) >= resolved.hours:
        return []
    return [
        f"leaves {_round_down(fits)} hours until {utc(one.ends_at)}, when AWS begins to end its nodes, half an hour before the block "
        f"ends; allowed: max_hours of {_round_down(fits)} at most, or a block that ends later"
    ]


def _round_down(hours: float) -> str:
    return f"{max(0, math.floor(hours * TENTHS) / TENTHS):g}"


def _round_up(hours: float) -> str:
    return f"{math.ceil(hours * TENTHS) / TENTHS:g}"
