"""Writes the catalogue's tables, each row by its key, so that late, twice and out of order change nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TypeVar

from aws.data_api import Transaction
from keeper.market import CapacityRow, KeptTables, PriceKey
from keeper.rows import RunRow

T = TypeVar("T")
BATCH = 500
"""Rows of a statement: the Data API takes 4 MiB, and a row with many metrics has a few KB."""
RUNS = """
insert into trainyard.runs (name, kind, campaign, region, type, image, outcome, metrics, seconds, cost_usd, ended_at)
select name, kind, coalesce((select name from trainyard.campaigns where name = row.campaign), ''), region, type, image, outcome, metrics,
    seconds, cost_usd, to_timestamp(ended_at)
from jsonb_to_recordset(cast(:rows as jsonb)) as row (name text, kind text, campaign text, region text, type text, image text,
    outcome text, metrics jsonb, seconds double precision, cost_usd double precision, ended_at double precision)
on conflict (name) do update set kind = excluded.kind, campaign = excluded.campaign, region = excluded.region,
    type = excluded.type, image = excluded.image, outcome = excluded.outcome, metrics = excluded.metrics,
    seconds = excluded.seconds, cost_usd = excluded.cost_usd, ended_at = excluded.ended_at
where excluded.ended_at >= runs.ended_at
"""
NEW_CAMPAIGNS = """
update trainyard.runs set campaign = campaigns.name from trainyard.campaigns
where runs.campaign = '' and starts_with(runs.name, campaigns.name || '-')
    and substr(runs.name, length(campaigns.name) + 2) ~ '^[0-9a-f]{12}(-r[1-9][0-9]*)?(/[0-9]+)?$'
"""
PRICES = """
insert into trainyard.prices (region, type, market, usd, at)
select region, type, market, usd, to_timestamp(:now)
from jsonb_to_recordset(cast(:rows as jsonb)) as row (region text, type text, market text, usd double precision)
on conflict (region, type, market) do update set usd = excluded.usd, at = excluded.at
where excluded.at >= prices.at
"""
NO_PRICES = """
delete from trainyard.prices where not exists (
    select from jsonb_to_recordset(cast(:rows as jsonb)) as row (region text, type text, market text)
    where row.region = prices.region and row.type = prices.type and row.market = prices.market)
"""
CAPACITY = """
insert into trainyard.capacity (reservation, region, type, kind, free, begins, ends)
select reservation, region, type, kind, free, to_timestamp(begins), to_timestamp(ends)
from jsonb_to_recordset(cast(:rows as jsonb)) as row (reservation text, region text, type text, kind text, free integer,
    begins double precision, ends double precision)
on conflict (reservation) do update set region = excluded.region, type = excluded.type, kind = excluded.kind,
    free = excluded.free, begins = excluded.begins, ends = excluded.ends
"""
NO_CAPACITY = """
delete from trainyard.capacity where reservation not in
    (select jsonb_array_elements_text(cast(:names as jsonb)))
"""
KEPT_CAPACITY = """
select reservation, region, type, kind, free, cast(extract(epoch from begins) as double precision),
    cast(extract(epoch from ends) as double precision) from trainyard.capacity
"""
TYPES = """
select distinct type from (
    select unnest(instance_types) as type from trainyard.campaigns
    union all select type from trainyard.runs where ended_at > to_timestamp(:now) - interval '90 days'
) as named where type <> '' order by type
"""


LOCK = "lock table trainyard.prices, trainyard.capacity in share row exclusive mode"
"""Keeps two passes apart; queries go on, and their role has no right to it."""


def begin_market(transaction: Transaction) -> str:
    """Waits for a pass that writes prices and capacity, and returns the id of this transaction, which is no other one's."""
    transaction.run(LOCK)
    return str(transaction.run("select cast(pg_current_xact_id() as text)").rows[0][0])


def read_market(transaction: Transaction, types: tuple[str, ...]) -> KeptTables:
    """Returns the prices and the capacity that the tables have, with these types."""
    prices = transaction.run("select region, type, market, usd from trainyard.prices").rows
    capacity = transaction.run(KEPT_CAPACITY).rows
    return KeptTables(
        types=types,
        prices={str(PriceKey(region=region, type=kind, market=market)): usd for region, kind, market, usd in prices},
        capacity={
            name: CapacityRow(region=region, type=kind, kind=of, free=free, begins=begins, ends=ends)
            for name, region, kind, of, free, begins, ends in capacity
        },
    )


def write_runs(transaction: Transaction, rows: Sequence[RunRow]) -> None:
    """Writes the rows, of which an older one replaces no newer one; with the campaign where the table has it."""
    for some in _batches(rows):
        transaction.run(RUNS, {"rows": [asdict(one) for one in some]})


def name_campaigns(transaction: Transaction) -> None:
    """Gives runs their campaign that ended before the table had it."""
    transaction.run(NEW_CAMPAIGNS)


def write_prices(transaction: Transaction, prices: Mapping[str, float], *, now: float) -> None:
    """Makes these the prices, and deletes all others."""
    rows = [{**asdict(PriceKey.parse(key)), "usd": usd} for key, usd in prices.items()]
    for some in _batches(rows):
        transaction.run(PRICES, {"rows": list(some), "now": now})
    transaction.run(NO_PRICES, {"rows": rows})


def write_capacity(transaction: Transaction, capacity: Mapping[str, CapacityRow]) -> None:
    """Makes these the reservations, and deletes all others."""
    for some in _batches([{"reservation": name, **asdict(one)} for name, one in capacity.items()]):
        transaction.run(CAPACITY, {"rows": list(some)})
    transaction.run(NO_CAPACITY, {"names": list(capacity)})


def read_types(transaction: Transaction, *, now: float) -> tuple[str, ...]:
    """Returns the types that campaigns name, and those of runs of the last 90 days."""
    return tuple(kind for (kind,) in transaction.run(TYPES, {"now": now}).rows)


def _batches(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    return (rows[start : start + BATCH] for start in range(0, len(rows), BATCH))
