"""Reads the bodies of S3's answers."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from contract import keys

if TYPE_CHECKING:
    from botocore.response import StreamingBody

MOST_WRITTEN = 2 * 1024**2
"""Bytes that are read of a report or an order. An honest report has at most 0.6 MB, twice 50 lines of 1,000 characters; one of 300
MB would end the function that looks at all jobs."""


def whole(body: StreamingBody, key: str) -> bytes:
    """The whole of it; of what nodes may write no more than is honest, and a document that is cut off is not JSON."""
    if not (fnmatchcase(key, keys.ANY_REPORT) or fnmatchcase(key, keys.ANY_ORDER)):
        return body.read()
    content = body.read(MOST_WRITTEN)
    if len(content) == MOST_WRITTEN:
        body.close()  # the rest is still on its way
    return content
