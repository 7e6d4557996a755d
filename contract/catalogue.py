"""The catalogue: a database of campaigns, data sets, runs and prices, which a grid's query reads."""

from __future__ import annotations

from dataclasses import dataclass

DATABASE = "trainyard"
SCHEMA = "trainyard"
"""Tables of the deployment, which the keeper writes."""
TEAM = "team"
"""Schema of the views that people add for their queries."""
KEEPER = "keeper"
"""Role that owns the database and both schemas."""
READER = "reader"
"""Role of queries, which may read and nothing else."""
PROTECTION = "Custom::CatalogueProtection"
"""Type of the resource whose deletion lifts the protection of the cluster."""
REMEMBERED = "catalogue/keeper.json"
"""Key, in the home bucket, of what the keeper wrote last: by it, an hour in which nothing changed leaves the database asleep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueAccess:
    """Where the database is, and as which of its roles a function logs in."""

    cluster: str
    """ARN."""
    secret: str
    """ARN, or name, of the secret with the role's name and password: the Data API reads it."""
