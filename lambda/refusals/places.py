"""Decides in which places of S3 a request may name something that exists already."""

from __future__ import annotations

from collections.abc import Collection

from contract import keys
from refusals.addresses import Address


def is_offered(address: Address, home: str, data_buckets: Collection[str]) -> bool:
    """Whether the address lies below the uploads of the home bucket, or in a bucket that the settings name for data."""
    uploaded = address.bucket == home and address.key.startswith(keys.UPLOADS)
    return uploaded or address.bucket in data_buckets
