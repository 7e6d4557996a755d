"""Keeps what the keeper wrote last, beside the database: two keepers at once do not lose each other's entries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from aws.errors import Raced
from aws.s3 import Bucket
from contract.catalogue import REMEMBERED
from contract.codec import Garbled, decode, encode
from keeper.market import KeptTables

TRIES = 5


def recall(bucket: Bucket, cluster: str) -> KeptTables:
    """Returns what is remembered of the cluster with this id; nothing where there is no document that can be read, or where it is of
    another cluster, and then everything is written again."""
    return _decode(bucket.get(REMEMBERED), cluster)


def remember(bucket: Bucket, cluster: str, change: Callable[[KeptTables], KeptTables]) -> None:
    """Writes what `change` makes of what is remembered of the cluster. Raises Raced where others write it again and again."""
    for _ in range(TRIES):
        found = bucket.get_tagged(REMEMBERED)
        after = encode(replace(change(_decode(found[0] if found else None, cluster)), cluster=cluster))
        try:
            if found:
                bucket.replace(REMEMBERED, after, found[1])
            else:
                bucket.create(REMEMBERED, after)
        except Raced:
            continue
        return
    raise Raced(REMEMBERED)


def _decode(body: bytes | None, cluster: str) -> KeptTables:
    try:
        found = decode(KeptTables, body) if body else KeptTables()
    except Garbled:
        return KeptTables()
    return found if found.cluster == cluster else KeptTables()
