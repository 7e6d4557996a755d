"""Decides whether prices and capacity differ from what was written, so that the database is woken for nothing else."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

ON_DEMAND, SPOT = "on-demand", "spot"
RESERVATION, BLOCK = "reservation", "block"
SAGEMAKER = "ml."
"""How types of SageMaker begin."""
THRESHOLD = 0.02
"""A smaller change of a price decides between no two places, and spot prices change a little all day: each would wake the database."""
KEPT_S = 26 * 3600.0
"""For how long an end is remembered that was written: an hour more than an hourly pass looks back, and an hour to spare."""
LOOKS_BACK_S = 24 * 3600.0
"""How old an end may be that no event told of: EventBridge delivers for 24 hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceKey:
    region: str
    type: str
    market: str

    def __str__(self) -> str:
        return f"{self.region} {self.type} {self.market}"

    @classmethod
    def parse(cls, text: str) -> PriceKey:
        region, kind, market = text.split(" ")
        return cls(region=region, type=kind, market=market)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRow:
    """A row of the table `capacity`."""

    region: str
    type: str
    kind: str
    free: int
    begins: float | None
    """UTC epoch seconds; None where EC2 does not say."""
    ends: float | None
    """None for never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTables:
    """What the database had when it was written last, kept beside it: reading it wakes nothing."""

    cluster: str = ""
    """Id of the cluster that was written; a cluster that was made or restored later has another one. Empty for none."""
    writing: str = ""
    """Id of the transaction that began to write prices and capacity; empty where `prices` and `capacity` are what it wrote. Where it stays,
    what the tables have is not known."""
    types: tuple[str, ...] = ()
    """Those that the tables name."""
    prices: dict[str, float] = field(default_factory=dict)
    """US dollars by the text of a PriceKey."""
    capacity: dict[str, CapacityRow] = field(default_factory=dict)
    """By the id of the reservation."""
    ends: dict[str, float] = field(default_factory=dict)
    """ARN of an execution whose end was written to when it ended, UTC epoch seconds; for KEPT_S."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketFacts:
    """What AWS said this hour. What a service did not say stays as it was."""

    on_demand: Mapping[tuple[str, str], float]
    """US dollars by region and type; without those that the Price List did not tell."""
    spot: Mapping[str, Mapping[str, float]]
    """Region that answered to the price of each type with spot capacity."""
    capacity: Mapping[str, Mapping[str, CapacityRow]]
    """Region that answered to its reservations by id."""


def merge_prices(before: KeptTables, market: MarketFacts, regions: Collection[str]) -> dict[str, float]:
    """Returns the prices that the table should have: new ones, and of regions that did not answer those of before. A type that the tables
    no longer name has none, nor has a region that left the settings."""
    found = dict[str, float]()
    for text, usd in before.prices.items():
        key = PriceKey.parse(text)
        answered = key.market == SPOT and key.region in market.spot
        if key.type in before.types and key.region in regions and not answered:
            found[text] = usd
    for (region, kind), usd in market.on_demand.items():
        found[str(PriceKey(region=region, type=kind, market=ON_DEMAND))] = usd
    for region, prices in market.spot.items():
        found |= {str(PriceKey(region=region, type=kind, market=SPOT)): usd for kind, usd in prices.items()}
    return found


def merge_capacity(before: KeptTables, market: MarketFacts, regions: Collection[str]) -> dict[str, CapacityRow]:
    """Returns the reservations that the table should have, of regions that did not answer those of before."""
    kept = {
        name: one
        for name, one in before.capacity.items()
        if one.region in regions and one.region not in market.capacity
    }
    return kept | {name: one for rows in market.capacity.values() for name, one in rows.items()}


def differs(before: KeptTables, prices: Mapping[str, float], capacity: Mapping[str, CapacityRow]) -> bool:
    """Whether the tables have to be written: a pass that may have written others, another set of rows, a price that moved by THRESHOLD, or
    any change of capacity."""
    return (
        bool(before.writing)
        or prices.keys() != before.prices.keys()
        or any(abs(usd - before.prices[key]) > THRESHOLD * before.prices[key] for key, usd in prices.items())
        or dict(capacity) != before.capacity
    )


def remember_ends(before: KeptTables, ends: Mapping[str, float], *, now: float) -> KeptTables:
    """Returns what is remembered with these ends, and without those that no pass looks for any more."""
    every = {**before.ends, **ends}
    return replace(before, ends={arn: at for arn, at in every.items() if at > now - KEPT_S})


def remember_market(before: KeptTables, written: KeptTables, transaction: str) -> KeptTables:
    """Returns what is remembered with the prices, the capacity and the types that the transaction wrote; unchanged where another one began
    after it, and remembers its own."""
    if before.writing != transaction:
        return before
    return replace(before, writing="", types=written.types, prices=written.prices, capacity=written.capacity)
