"""Moves bodies between open files and a bucket: by helpers where there is much to move, else by boto3.

Whatever a helper cannot do (a refusal, a broken connection, a redirect, a full disk, its own end) boto3 does, with its retries, the
newest credentials and its errors: there is one place that judges what S3 answers.
"""

from __future__ import annotations

import io
import threading
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from botocore.exceptions import ClientError, HTTPClientError, IncompleteReadError
from botocore.utils import get_environ_proxies

from agent.engine.crc import PartSums, crc32, encode_crc
from agent.engine.extents import WINDOW, checksum, fill, write
from agent.engine.helpers import HelperFailed, Helpers
from agent.engine.places import SentBody
from agent.engine.wanted import Unusable
from agent.store import Store
from contract.aws_errors import code_of

CRC32 = "x-amz-checksum-crc32"
SIGNED_S, REUSED_S = 900, 300.0
"""How long a signed request is valid, and for how long one is used for further parts of an object."""
TRIES, PAUSE_S = 6, 0.5
"""For an answer that breaks off; boto3 repeats what is not answered at all."""
OUTSIDE = ("InvalidRange", "416")


class Extent(NamedTuple):
    """A part of an open file."""

    file: int
    start: int
    size: int
    memory: memoryview | None = None
    """The same bytes, where this process has them in memory as well."""

    def fill(self, view: memoryview, at: int) -> None:
        """Reads bytes from the part's byte `at` on. Raises extents.Shorter."""
        if self.memory is None:
            fill(self.file, view, self.start + at)
        else:
            view[:] = self.memory[at : at + len(view)]

    def checksum(self, window: memoryview) -> int:
        """Returns the CRC32. Raises extents.Shorter."""
        if self.memory is None:
            return checksum(self.file, self.start, self.size, window)
        return crc32(self.memory, 0)

    def write(self, content: memoryview, at: int) -> None:
        """Writes from the part's byte `at` on; zeros become holes."""
        if self.memory is None:
            write(self.file, content, self.start + at)
        else:
            self.memory[at : at + len(content)] = content


class Body(io.RawIOBase):
    """A part of an open file, as a file for boto3."""

    def __init__(self, extent: Extent) -> None:
        self._extent, self._at = extent, 0

    def __len__(self) -> int:
        return self._extent.size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, into: Any, /) -> int:
        size = min(len(into), self._extent.size - self._at)
        self._extent.fill(memoryview(into)[:size], self._at)
        self._at += size
        return size

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._at = (0, self._at, self._extent.size)[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at


class Mover:
    """Any thread may use it. Calls raise what boto3 raises after its retries, except where their docstring says otherwise."""

    def __init__(
        self, store: Store, helpers: Helpers, *, failed: Callable[[], bool], sleep: Callable[[float], None]
    ) -> None:
        """`failed`: whether what is moved is not wanted any more."""
        self._store, self._helpers, self._failed, self._sleep = store, helpers, failed, sleep
        self._own, self._urls = threading.local(), dict[str, tuple[str, float]]()

    def check(self, extent: Extent) -> int:
        """Returns the CRC32 of a part of a file. Raises extents.Shorter."""
        if self._helpers.lines and extent.memory is None:
            with suppress(HelperFailed):
                done = self._helpers.ask({"do": "check", "start": extent.start, "size": extent.size}, extent.file)
                return int(done["crc32"])
        return extent.checksum(self._window())

    def put(self, call: str, extent: Extent, crc: int | None = None, **where: Any) -> SentBody:
        """Sends a part of a file by a call of the client (`put_object`, `upload_part`); S3 compares its CRC32. Raises extents.Shorter."""
        crc = self.check(extent) if crc is None else crc
        params = {"Bucket": self._store.bucket, **where, "ChecksumCRC32": encode_crc(crc)}
        try:
            if self._helpers.lines:
                order = {"do": "put", **describe_request(self._sign(call, params), {CRC32: encode_crc(crc)})}
                done = self._helpers.ask({**order, "start": extent.start, "size": extent.size}, extent.file)
                return SentBody(done["etag"], crc)
        except HelperFailed:
            crc = extent.checksum(self._window())  # the file may be another one by now
            params["ChecksumCRC32"] = encode_crc(crc)
        answer = getattr(self._store.client, call)(**params, Body=Body(extent))
        return SentBody((answer or {}).get("ETag", ""), crc)

    def get(self, key: str, offset: int, into: Extent, part: int) -> list[int]:
        """Writes bytes of an object into a part of a new file, zeros as holes. Returns the CRC32 of each `part` bytes, where they go to a
        file: small ones in memory have a digest each. Raises Unusable where the object is not there, or ends before; OSError where the
        disk is full."""
        try:
            if self._helpers.lines:
                sparse = into.memory is None
                order = {"do": "get", **self._reused(key), "offset": offset, "part": part, "sparse": sparse}
                done = self._helpers.ask({**order, "start": into.start, "size": into.size}, into.file)
                return list(done["crc32s"])
        except HelperFailed:
            self._urls.pop(key, None)
        for attempt in range(1, TRIES + 1):
            try:
                return self._once(key, offset, into, part)
            except (HTTPClientError, IncompleteReadError):
                if attempt == TRIES or self._failed():
                    raise
                self._sleep(PAUSE_S * attempt)
        raise AssertionError("unreachable")

    def _once(self, key: str, offset: int, into: Extent, part: int) -> list[int]:
        where = f"s3://{self._store.bucket}/{key}"
        try:
            wanted = f"bytes={offset}-{offset + into.size - 1}"
            answer = self._store.client.get_object(Bucket=self._store.bucket, Key=key, Range=wanted)
        except ClientError as problem:
            if code_of(problem) in OUTSIDE:
                raise Unusable(f"{where} ends before byte {offset}") from None
            if self._store.lacks(key, problem):
                raise Unusable(f"{where} is missing") from None
            raise
        sums, done = PartSums(part), 0
        with closing(answer["Body"]) as body:
            if answer["ContentLength"] != into.size:
                raise Unusable(f"{where} ends before byte {offset + into.size}")
            while done < into.size:
                piece = body.read(min(4 * WINDOW, into.size - done, sums.room))
                if not piece:
                    raise IncompleteReadError(actual_bytes=done, expected_bytes=into.size)
                if into.memory is None:
                    sums.add(piece)
                into.write(memoryview(piece), done)
                done += len(piece)
        return sums.list()

    def _reused(self, key: str) -> dict[str, Any]:
        """A signed request for an object: the range of each part is no part of the signature."""
        url, until = self._urls.get(key, ("", 0.0))
        if time.monotonic() >= until:
            url = self._sign("get_object", {"Bucket": self._store.bucket, "Key": key})
            self._urls[key] = url, time.monotonic() + REUSED_S
        return describe_request(url, {})

    def _sign(self, call: str, params: dict[str, Any]) -> str:
        url: str = self._store.client.generate_presigned_url(call, Params=params, ExpiresIn=SIGNED_S)
        return url

    def _window(self) -> memoryview:
        """This thread's own memory."""
        if not hasattr(self._own, "window"):
            self._own.window = memoryview(bytearray(WINDOW))
        window: memoryview = self._own.window
        return window


def describe_request(url: str, headers: dict[str, str]) -> dict[str, Any]:
    """Returns a signed request as helpers take it, which know nothing of URLs, with the proxy that the environment names for it."""
    to, by = urlsplit(url), urlsplit(get_environ_proxies(url).get(urlsplit(url).scheme, ""))
    login = f"{unquote(by.username)}:{unquote(by.password or '')}" if by.username else ""
    proxy = (by.hostname, by.port or 80, f"Basic {b64encode(login.encode()).decode()}" if login else "")
    secure = to.scheme == "https"
    return {
        "origin": (secure, to.hostname, to.port or (443 if secure else 80), proxy if by.hostname else None),
        "target": f"{to.path}?{to.query}",
        "headers": {"Host": to.netloc, **headers},
    }


def prepare(client: Any) -> None:
    """Makes the client sign what others send as it signs its own requests, for the bucket's region and not for S3's address of all regions;
    and sign a body that has a checksum without a second digest of its own. Over TLS S3 wants none, and a SHA-256 takes longer than the
    encryption; botocore computes it for checksums that it was given."""

    def choose_region(context: dict[str, Any], **_: Any) -> None:
        context["use_global_endpoint"] = False

    def name_algorithm(params: Any, **_: Any) -> None:
        if CRC32 in params["headers"]:
            params["context"]["checksum"] = {"request_algorithm": {"algorithm": "crc32", "in": "header", "name": CRC32}}

    client.meta.events.register("before-parameter-build.s3", choose_region, unique_id="trainyard-region")
    client.meta.events.register("before-call.s3", name_algorithm, unique_id="trainyard-hash-once")
