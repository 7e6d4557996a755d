"""Builds the ladder of a request: every place, type and market in which its nodes may run, in the order in which they are tried."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from aws.times import utc
from contract.jobs import Market, Rung
from job_checks.regions import ResolvedRegion
from job_checks.resolve import ResolvedRequest
from job_requests.request import JobRequest

MOST_RUNGS = 240
"""Of one job. A walk writes all of them down before and after each call, and Step Functions' output shows them."""
REASONS_SHOWN = 3
"""So many different reasons against one type a refusal names; there may be one a region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """`problems` are reasons against the request; `left_out` says what is not tried although the request allows it."""

    rungs: tuple[Rung, ...]
    problems: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRequest:
    """A resolved request with the ladder of its places."""

    resolved: ResolvedRequest
    ladder: Ladder


def build_ladder(resolved: ResolvedRequest) -> PlacedRequest:
    """Lists every type in the order of the request, in each market, in each of our zones that offers it; the cheapest places first.

    A region that the request names has to be one where its nodes can run; of "auto" the others are left out.
    """
    request, regions = resolved.request, resolved.regions
    rungs, problems, useful = list[Rung](), list[str](), set[str]()
    for name in request.instance_types:
        if name in resolved.forbidden:
            problems.append(resolved.forbidden[name])
            continue
        found = [_list_rungs(request, region, name) for region in regions]
        reasons = [region.offers[name].problems for region in regions if name in region.offers]
        problems += _choose_reasons(reasons, any_found=any(found))
        useful |= {rung.region for more in found for rung in more}
        rungs += _sort_rungs(request, [rung for more in found for rung in more])
    against = {one.name: one.against for one in regions if one.against}
    words = request.instance_types[0] if len(request.instance_types) == 1 else "any of instance_types"
    unused = {
        one.name: [f"none of its zones offers {words}"]
        for one in regions
        if rungs and not one.against and one.name not in useful
    }
    left_out = against | unused
    if not request.anywhere:
        lines = [line for lines in against.values() for line in lines]
        lines += [f"regions: {region}: {why}; allowed: regions that have one" for region, (why,) in unused.items()]
        problems, left_out = [*lines, *problems], {}
    elif not rungs:
        problems = [*(line for lines in against.values() for line in lines), *problems]
    kept = _bound_rungs(request, rungs)
    dropped = [f"{len(rungs) - len(kept)} dearer places"] if len(kept) < len(rungs) else []
    skipped = [f"{region}: {'; '.join(lines)}" for region, lines in left_out.items()]
    unique = tuple(dict.fromkeys(problems))
    return PlacedRequest(
        resolved=resolved, ladder=Ladder(rungs=tuple(kept), problems=unique, left_out=(*skipped, *dropped))
    )


def _list_rungs(request: JobRequest, region: ResolvedRegion, name: str) -> list[Rung]:
    """Returns every market and zone in which the region offers the type; empty where something stands against it."""
    offer, facts = region.offers.get(name), region.facts
    if facts is None or offer is None or offer.kind is None or offer.image is None:
        return []
    return [
        Rung(
            region=region.name,
            zone=zone,
            instance_type=name,
            market=market,
            image=offer.image,
            cluster=offer.kind.cluster and request.nodes > 1,
            usd=facts.spot.get((name, zone)) if market is Market.SPOT else facts.on_demand.get(name),
        )
        for market in request.market.markets
        for zone in offer.zones
    ]


def _choose_reasons(reasons: Sequence[list[str]], *, any_found: bool) -> list[str]:
    """Returns the reasons against a type: all where no region has it, and only a disk that is too small where one has it."""
    lines = list(dict.fromkeys(line for lines in reasons for line in lines))
    hard = [line for line in lines if line.startswith("volume_gb")]
    return hard if any_found else lines[:REASONS_SHOWN]


def _sort_rungs(request: JobRequest, rungs: Sequence[Rung]) -> list[Rung]:
    """Sorts those of one type by market, then by price. Where a price is not known, the order of regions and zones stays, after those that
    are."""
    markets = request.market.markets
    return sorted(rungs, key=lambda one: (markets.index(one.market), math.inf if one.usd is None else one.usd))


def _bound_rungs(request: JobRequest, rungs: Sequence[Rung]) -> list[Rung]:
    """Keeps at most MOST_RUNGS, as many of each type and market as of any other."""
    if len(rungs) <= MOST_RUNGS:
        return list(rungs)
    share = MOST_RUNGS // (len(request.instance_types) * len(request.market.markets))
    kinds = Counter[tuple[str, Market]]()
    kept = list[Rung]()
    for one in rungs:
        kinds[one.instance_type, one.market] += 1
        if kinds[one.instance_type, one.market] <= share:
            kept.append(one)
    return kept


def describe_rung(rung: Rung) -> str:
    """Says in the execution's output what a rung is."""
    if rung.shapes:
        nodes = sum(one.nodes for one in rung.shapes)
        usd = "" if rung.usd is None else f", ${rung.usd * nodes:.4f} an hour of all"
        each = (f"{one.nodes} of {one.rung.instance_type} {one.rung.market.value}" for one in rung.shapes)
        return f"{', '.join(each)} in {rung.zone}{usd}"
    price = "" if rung.usd is None else f", ${rung.usd:.4f} an hour"
    reserved = f" {rung.reservation}" if rung.reservation else ""
    begins = f", from {utc(rung.begins_at)}" if rung.begins_at else ""
    ends = "" if rung.ends_at is None else f", until {utc(rung.ends_at)}"
    return f"{rung.instance_type} in {rung.zone}, {rung.market.value}{reserved}{price}{begins}{ends}"
