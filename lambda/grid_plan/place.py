"""Says where manifests may lie, and what a refusal says about a name that is taken."""

from __future__ import annotations

from contract import keys
from contract.environments import GridEnvironment
from contract.grid import GRIDS
from contract.search import SEARCHES
from refusals.addresses import Address

MOST_MANIFEST = 1024**3
"""The most bytes: 100,000 lines of 10 KB. The manifest is read twice, as a stream."""


def is_readable(address: Address, env: GridEnvironment) -> bool:
    """Whether the address is in the uploads, in a data bucket, a list of lines that an earlier grid left over, or a search's round."""
    if address.bucket == env.bucket:
        return address.key.startswith((keys.UPLOADS, GRIDS, SEARCHES))
    return address.bucket in env.data_buckets


def places(env: GridEnvironment) -> str:
    """Names these places for a person."""
    ours = [f"s3://{env.bucket}/{folder}..." for folder in (keys.UPLOADS, GRIDS)]
    return f"{', '.join([*ours, *(f's3://{bucket}/...' for bucket in env.data_buckets)])} (data_buckets in cdk.json)"


def taken(name: str, execution: str, started_at: str) -> str:
    return (
        f"name: {name} is the name of a grid of another execution ({execution}, started {started_at}); "
        "allowed: a name that no grid has had"
    )
