"""Large bodies as boto3 sends and brings them: without a copy, and hashed once."""

from __future__ import annotations

import io
import os
import zlib
from base64 import b64encode
from typing import Any

from botocore.exceptions import IncompleteReadError

CRC32 = "x-amz-checksum-crc32"
CONNECTIONS = max(5, min(24, (os.cpu_count() or 1) // 4))
"""Requests at a time. S3 gives a connection 85 to 90 MB/s; the agent's clients keep up to 32 open (aws.CONNECTIONS)."""
WINDOW = 1024 * 1024
"""Bytes that are taken from an answer at a time: urllib3 keeps as many in memory besides."""


class Payload(io.RawIOBase):
    """A part of a block of memory, as a file for boto3."""

    def __init__(self, view: memoryview) -> None:
        self._view, self._at = view, 0

    def __len__(self) -> int:
        return len(self._view)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, into: Any, /) -> int:
        piece = self._view[self._at : self._at + len(into)]
        into[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._at = (0, self._at, len(self._view))[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def crc32(self) -> str:
        """As S3 takes it. S3 refuses what arrives with another one."""
        return b64encode(zlib.crc32(self._view).to_bytes(4, "big")).decode()


def receive(into: memoryview, body: Any) -> None:
    """Reads an answer that has as many bytes. Raises what botocore raises of a connection that ends."""
    have = 0
    while have < len(into):
        piece = body.read(min(WINDOW, len(into) - have))
        if not piece:
            raise IncompleteReadError(actual_bytes=have, expected_bytes=len(into))
        into[have : have + len(piece)] = piece
        have += len(piece)


def hash_once(client: Any) -> None:
    """Makes the client sign a body that has a checksum without a second digest of its own. Over TLS S3 wants none, and a SHA-256 takes
    longer than the encryption; botocore computes it for checksums that it was given."""

    def name_algorithm(params: Any, **_: Any) -> None:
        if CRC32 in params["headers"]:
            params["context"]["checksum"] = {"request_algorithm": {"algorithm": "crc32", "in": "header", "name": CRC32}}

    client.meta.events.register("before-call.s3", name_algorithm, unique_id="trainyard-hash-once")
