"""Serves buckets over TLS; a test says what goes wrong with which request."""

from __future__ import annotations

import re
import ssl
from collections import Counter, defaultdict
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from localaws.model import Refused
from localaws.sink.certificate import certificate
from localaws.sink.loop import Channel, Loop, Waiting
from localaws.sink.objects import PAGE, Bucket, checked, checksums
from localaws.sink.wire import Connection, Request

NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
RANGE = re.compile(r"bytes=(\d+)-(\d*)$")


@dataclass(frozen=True)
class Cut:
    """The connection ends after so many bytes of the body, of the request or, where it has none, of the answer."""

    after: int = 0


@dataclass(frozen=True)
class Flipped:
    """One bit of what arrives, or of what is answered, is another one."""

    at: int = 0


@dataclass(frozen=True)
class Mute:
    """No answer comes for so long, and then the connection ends."""

    seconds: float


Fault = Cut | Flipped | Mute | Refused


class Sink:
    """A server on a port of its own. `verify`: whether it computes the checksums that clients send. `rate`: bytes a second of each
    connection, 0 for any."""

    def __init__(
        self, folder: Path, *, late_s: float = 0.0, verify: bool = True, port: int = 0, rate: float = 0.0
    ) -> None:
        self.authority, chain = certificate(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        self.buckets: defaultdict[str, Bucket] = defaultdict(Bucket)
        self.late_s, self.verify = late_s, verify
        self.fault: Callable[[Request], Fault | None] = lambda _: None
        self.calls: Counter[str] = Counter()
        self.checksums: Counter[str] = Counter()
        """Of bodies, by kind."""
        self.seen: list[Request] = []
        """Every request, without its body, where `keep` is set."""
        self.keep = False
        self.expired = ""
        """An access key that is not taken any more."""
        self._loop = Loop(context, self._serve, port, rate)
        self.endpoint = f"https://127.0.0.1:{self._loop.port}"

    def close(self) -> None:
        """Ends every connection as well."""
        self._loop.close()

    def _serve(self, channel: Channel) -> Waiting:
        yield self.late_s
        yield from channel.open()
        connection, goes_on = Connection(channel), True
        while goes_on:
            goes_on = yield from self._one(connection)

    def _one(self, connection: Connection) -> Generator[str | float, None, bool]:
        """Whether the connection goes on."""
        request = yield from connection.head()
        name = _name(request)
        self.calls[name] += 1
        if self.keep:
            self.seen.append(Request(request.method, request.bucket, request.key, request.query, request.headers))
        fault = self.fault(request)
        if isinstance(fault, Cut) and request.length:
            yield from connection.body(request, most=fault.after)
            return False
        yield from connection.body(request)
        if wait_s := fault.seconds if isinstance(fault, Mute) else self.late_s:
            yield wait_s
        if isinstance(fault, Mute):
            return False
        if isinstance(fault, Flipped) and request.body:
            request.body = _flipped(request.body, fault.at)
        try:
            if isinstance(fault, Refused):
                raise fault
            status, headers, body = self._answer(name, request)
        except Refused as problem:
            text = f"<Error><Code>{problem.code}</Code><Message>{escape(problem.message)}</Message></Error>".encode()
            status, headers, body = problem.status, {"Content-Type": "application/xml"}, [memoryview(text)]
        if isinstance(fault, Flipped) and not request.body:
            body = [memoryview(_flipped(b"".join(body), fault.at))]
        if isinstance(fault, Cut):
            whole = b"".join(body)
            yield from connection.raw(
                f"HTTP/1.1 {status} x\r\nContent-Length: {len(whole)}\r\n\r\n".encode() + whole[: fault.after]
            )
            return False
        yield from connection.answer(status, headers, body, bodiless=request.method == "HEAD")
        return request.headers.get("connection", "").lower() != "close"

    def _answer(self, name: str, request: Request) -> tuple[int, dict[str, str], list[memoryview]]:
        if self.expired and self.expired in request.headers.get("authorization", ""):
            raise Refused("ExpiredToken", "The provided token has expired.")
        if "authorization" not in request.headers and "X-Amz-Signature" not in request.query:
            raise Refused("AccessDenied", "Access Denied", 403)
        if self.verify:
            self.checksums.update(checked(request))
        bucket, told = self.buckets[request.bucket], checksums(request)
        upload = request.query.get("uploadId", "")
        if name == "PutObject":
            stored = bucket.put_new(request.key, request.body, request.headers.get("if-none-match"))
            return 200, {"ETag": stored.etag, **told}, []
        if name == "UploadPart":
            return 200, {"ETag": bucket.part(upload, int(request.query["partNumber"]), request), **told}, []
        if name == "CreateMultipartUpload":
            upload = bucket.begin(request.key, request.headers.get("x-amz-checksum-algorithm", ""))
            return _xml("InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>")
        if name == "CompleteMultipartUpload":
            stored = bucket.complete(upload, _parts(bytes(request.body)), request.headers.get("x-amz-mp-object-size"))
            return _xml("CompleteMultipartUploadResult", f"<ETag>{stored.etag}</ETag>")
        if name == "AbortMultipartUpload":
            bucket.abort(upload)
            return 204, {}, []
        if name in ("GetObject", "HeadObject"):
            return _got(bucket, request)
        if name == "ListObjectsV2":
            return _listed(bucket, request)
        if name == "DeleteObjects":
            bucket.delete(
                [key.text or "" for key in ElementTree.fromstring(bytes(request.body)).iter() if _tag(key) == "Key"]
            )
            return _xml("DeleteResult", "")
        if name == "DeleteObject":
            bucket.delete([request.key])
            return 204, {}, []
        raise Refused("NotImplemented", f"{name} is not served here", 501)


def _name(request: Request) -> str:
    """The call, in the API's words."""
    of_object, query = bool(request.key), request.query
    if request.method == "PUT" and of_object:
        return (
            "UploadPart"
            if "partNumber" in query
            else "CopyObject"
            if "x-amz-copy-source" in request.headers
            else "PutObject"
        )
    if request.method == "POST":
        named = {"uploads": "CreateMultipartUpload", "uploadId": "CompleteMultipartUpload", "delete": "DeleteObjects"}
        return next((name for word, name in named.items() if word in query), "PostObject")
    if request.method == "DELETE" and of_object:
        return "AbortMultipartUpload" if "uploadId" in query else "DeleteObject"
    if request.method in ("GET", "HEAD"):
        kind = "Object" if of_object else "Bucket"
        return "ListObjectsV2" if query.get("list-type") == "2" else f"{request.method.title()}{kind}"
    return request.method


def _got(bucket: Bucket, request: Request) -> tuple[int, dict[str, str], list[memoryview]]:
    stored = bucket.get(request.key)
    headers = {"ETag": stored.etag, "Last-Modified": "Mon, 23 Nov 2026 00:00:00 GMT", "Accept-Ranges": "bytes"}
    start, end, status = 0, stored.size, 200
    if told := RANGE.match(request.headers.get("range", "")):
        start, end, status = int(told[1]), min(int(told[2]) + 1 if told[2] else stored.size, stored.size), 206
        if start >= stored.size:
            raise Refused("InvalidRange", "The requested range is not satisfiable", 416)
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{stored.size}"
    headers["Content-Length"] = str(end - start)
    return status, headers, stored.range(start, end)


def _listed(bucket: Bucket, request: Request) -> tuple[int, dict[str, str], list[memoryview]]:
    query = request.query
    if query.get("delimiter"):
        raise Refused("NotImplemented", "lists with a delimiter are not served here", 501)
    after = query.get("continuation-token") or query.get("start-after", "")
    keys, more = bucket.page(query.get("prefix", ""), after, int(query.get("max-keys", PAGE)))
    spelt = quote if query.get("encoding-type") == "url" else escape
    entries = "".join(
        f"<Contents><Key>{spelt(key)}</Key><Size>{bucket.objects[key].size}</Size><ETag>{bucket.objects[key].etag}</ETag>"
        "<LastModified>2026-11-23T00:00:00.000Z</LastModified><StorageClass>STANDARD</StorageClass></Contents>"
        for key in keys
    )
    encoding = "<EncodingType>url</EncodingType>" if spelt is quote else ""
    following = f"<NextContinuationToken>{escape(keys[-1])}</NextContinuationToken>" if more else ""
    return _xml(
        "ListBucketResult",
        f"<Name>{request.bucket}</Name>{encoding}<KeyCount>{len(keys)}</KeyCount><MaxKeys>{PAGE}</MaxKeys>"
        f"<IsTruncated>{str(more).lower()}</IsTruncated>{following}{entries}",
    )


def _parts(document: bytes) -> list[tuple[int, dict[str, str]]]:
    found = []
    for part in ElementTree.fromstring(document):
        said = {_tag(one): one.text or "" for one in part}
        found.append((int(said.pop("PartNumber")), said))
    return found


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _xml(name: str, inside: str) -> tuple[int, dict[str, str], list[memoryview]]:
    text = f'<?xml version="1.0" encoding="UTF-8"?><{name} {NAMESPACE}>{inside}</{name}>'.encode()
    return 200, {"Content-Type": "application/xml"}, [memoryview(text)]


def _flipped(body: bytes | bytearray, at: int) -> bytearray:
    wrong = bytearray(body)
    wrong[min(at, len(wrong) - 1)] ^= 1
    return wrong
