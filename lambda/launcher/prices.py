"""Decides the order of spot places by new prices, for jobs that wait longer than prices last, and words a price with its age.

Facts and the time in, verdicts out: no call of AWS.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace

from contract.jobs import Job, Market, Rung

Kind = tuple[str, str]
"""A region and a type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """What EC2 said of the spot price of a type in a region, USD an hour by zone; empty where it said nothing."""

    at: float
    usd: Mapping[str, float]


def list_wanted(job: Job, known: Container[Kind], *, now: float) -> dict[str, list[str]]:
    """Returns the types whose prices have to be asked for, by region; none while those of the admission are fresh, and none for a job with
    roles, whose ladder keeps the order of its admission."""
    if job.roles or now - job.admitted_at < job.timing.spot_prices_s:
        return {}
    kinds = dict.fromkeys((one.region, one.instance_type) for one in job.ladder if one.market is Market.SPOT)
    regions = dict[str, list[str]]()
    for region, instance_type in kinds:
        if (region, instance_type) not in known:
            regions.setdefault(region, []).append(instance_type)
    return regions


def sort_prices(
    region: str, types: Iterable[str], usd: Mapping[tuple[str, str], float], *, now: float
) -> dict[Kind, Priced]:
    """Returns what EC2 said of a region's types, by type and zone. A type of which it said nothing is known to have no price."""
    return {
        (region, name): Priced(at=now, usd={zone: price for (kind, zone), price in usd.items() if kind == name})
        for name in types
    }


def order_ladder(job: Job, known: Mapping[Kind, Priced]) -> tuple[Rung, ...]:
    """Returns the job's ladder with new prices: of each type the cheaper spot place comes first. Types and markets stay in their order, and
    so does everything whose price EC2 does not tell."""
    if job.roles:
        return job.ladder
    rungs = [_price_rung(one, known) for one in job.ladder]
    groups = list(dict.fromkeys((one.instance_type, one.market) for one in rungs))

    def rank(rung: Rung) -> tuple[int, float]:
        spot = math.inf if rung.usd is None else rung.usd
        return groups.index((rung.instance_type, rung.market)), spot if rung.market is Market.SPOT else 0.0

    return tuple(sorted(rungs, key=rank))


def _price_rung(rung: Rung, known: Mapping[Kind, Priced]) -> Rung:
    found = known.get((rung.region, rung.instance_type))
    if rung.market is not Market.SPOT or found is None or rung.zone not in found.usd:
        return rung
    return replace(rung, usd=found.usd[rung.zone], priced_at=found.at)


def describe_price(rung: Rung, *, now: float) -> str:
    """Words the price of a rung with its age."""
    if rung.usd is None:
        return "unknown"
    age = f"{max(0.0, now - rung.priced_at) / 60:.0f} min ago" if rung.priced_at else "when the job was admitted"
    return f"${rung.usd:.4f} an hour of one node, {age}"
