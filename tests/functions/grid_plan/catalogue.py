"""The catalogue on a real PostgreSQL, as its own files make it, for the tests of queries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aws.data_api import DataApi
from catalogue_schema.handler import FILES
from catalogue_schema.migration import migrate
from catalogue_schema.policy import read_files
from contract.catalogue import KEEPER, READER, CatalogueAccess
from tests.fakes.catalogue import CLUSTER, DataApiOver, serving

ACCESS = CatalogueAccess(cluster=CLUSTER, secret=READER)
SEED = (
    "insert into trainyard.campaigns (name) values ('drive-eu')",
    "insert into trainyard.data_sets (campaign, name, region, address) values "
    "('drive-eu', 'a', 'eu-central-1', 's3://data-eu/train/'), ('drive-eu', 'a', 'us-east-1', 's3://data-us/train/')",
    "insert into trainyard.prices (region, type, market, usd, at) values "
    "('eu-central-1', 'ml.g5.xlarge', 'spot', 0.5, now()), ('us-east-1', 'ml.g5.xlarge', 'spot', 0.4, now())",
    "create sequence team.numbers",
    "create view team.next_grid as select region, address as data from trainyard.data_sets",
    "create schema hidden",
    "create table hidden.things as select 1 as one",
)


@contextmanager
def serve_catalogue(folder: Path) -> Iterator[DataApiOver]:
    """Serves the catalogue with two copies of one data set; the folder must be missing or empty."""
    with serving(folder) as calls:
        keeper = DataApi(calls.access(KEEPER), calls)
        migrate(keeper, read_files({one.name: one.read_text() for one in Path(FILES).glob("*.sql")}))
        keeper.run(f"alter role {READER} password 'of-the-reader'")
        calls.passwords[READER] = "of-the-reader"
        for statement in SEED:
            keeper.run(statement)
        yield calls
