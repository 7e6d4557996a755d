"""Documents that may be too long for one item: pieces of their own, and a head that names them, whose conditional write decides."""

from __future__ import annotations

import json
from collections.abc import Iterator

from aws.table import Item, Table
from contract.items import ItemKey

PIECE = 700_000
"""Bytes of JSON in one item. Ids in hexadecimal are half of such documents, and zlib halves those, so a piece stays below 400 KB."""


def read(table: Table, key: ItemKey) -> tuple[Item, bytes] | None:
    """The head, and the whole document: empty where a piece is missing. None where there is no head."""
    head = table.get(key)
    if head is None:
        return None
    named = _named(head.document)
    if named is None:
        return head, head.document
    count, prefix = named
    pieces = [piece.document for piece in table.query(key.partition, prefix)]
    return head, b"".join(pieces) if len(pieces) == count else b""


def write(table: Table, key: ItemKey, before: Item | None, document: bytes, *, writer: str) -> Item:
    """Creates the document, or replaces that of the head `before`. Raises Raced where the head is another one by now.

    Two writers never write the same pieces: `writer` is in their names, and so is the head's version.
    """
    head, pieces = document, list(_cut(document))
    if len(pieces) > 1:
        prefix = f"{key.sort}#{writer}-{before.version + 1 if before else 1}#"
        for place, piece in enumerate(pieces):
            table.put(ItemKey(key.partition, f"{prefix}{place:04d}"), piece)
        head = json.dumps({"pieces": len(pieces), "prefix": prefix}).encode()
    made = table.replace(before, head) if before else table.create(key, head)
    # No other pieces are deleted: they may be those of a writer who is about to replace this head.
    if before and (named := _named(before.document)):
        for piece in table.query(key.partition, named[1]):
            table.delete(piece.key)
    return made


def _named(head: bytes) -> tuple[int, str] | None:
    """How many pieces there are, and how their sort keys begin; None for a document that is whole."""
    if len(head) > 1000:
        return None
    try:
        told = json.loads(head)
        return int(told["pieces"]), str(told["prefix"])
    except (ValueError, KeyError, TypeError):
        return None


def _cut(document: bytes) -> Iterator[bytes]:
    for start in range(0, max(1, len(document)), PIECE):
        yield document[start : start + PIECE]
