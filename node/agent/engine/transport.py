"""Sends the large requests of a boto3 client over connections of our own; boto3 signs them, repeats them and reads their errors."""

from __future__ import annotations

import io
import ssl
import threading
import zlib
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from agent.engine.wire import Connection, Cut, Head, Pool, Server

CRC32 = "x-amz-checksum-crc32"


class Payload(io.RawIOBase):
    """Bytes to send, as a file for boto3 and in one piece for the transport."""

    def __init__(self, view: memoryview) -> None:
        self.view, self._at = view, 0

    def __len__(self) -> int:
        return len(self.view)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, into: Any, /) -> int:
        piece = self.view[self._at : self._at + len(into)]
        into[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._at = (0, self._at, len(self.view))[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def crc32(self) -> str:
        """As S3 takes it. S3 refuses what arrives with another one."""
        return b64encode(zlib.crc32(self.view).to_bytes(4, "big")).decode()


class Body(io.RawIOBase):
    """The rest of an answer. Its connection goes back to the pool once all of it has been read."""

    def __init__(self, url: str, connection: Connection, pool: Pool, size: int, *, keep: bool) -> None:
        self._url, self._connection, self._pool, self._left = url, connection, pool, size
        self._keep, self._done = keep, False
        if not size:
            self._finish()

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any, /) -> int:
        """Fills `into`, or as much as is left. Raises what botocore raises of a connection that ends."""
        view = memoryview(into)[: self._left]
        if not view:
            return 0
        with as_botocore(self._url):
            if self._connection.read_into(view) < len(view):
                raise Cut(f"the connection ended {self._left} bytes before the end of the answer")
        self._left -= len(view)
        if not self._left:
            self._finish()
        return len(view)

    def stream(self, amt: int = 65536, decode_content: bool = False) -> Iterator[bytes]:  # noqa: ARG002
        """As urllib3's answers give their bytes to botocore."""
        while piece := self.read(amt):
            yield piece

    def close(self) -> None:
        if not self._done:
            self._done = True
            self._connection.close()  # nobody reads the rest
        super().close()

    def _finish(self) -> None:
        self._done = True
        if self._keep:
            self._pool.give(self._connection)
        else:
            self._connection.close()


class Whole(io.BytesIO):
    """An answer that has been read."""

    def stream(self, amt: int = 65536, decode_content: bool = False) -> Iterator[bytes]:  # noqa: ARG002
        """As urllib3's answers give their bytes to botocore."""
        while piece := self.read(amt):
            yield piece


class Transport:
    """Of one client. A request goes this way while its thread is inside of `used`, and boto3's own way otherwise.

    Through a proxy, or with a certificate of the client's own, boto3 sends them all.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._own = threading.local()
        self._context: ssl.SSLContext | None = None
        self._pool = Pool(self._connect)
        client.meta.events.register("before-call.s3", self._without_digest)
        client.meta.events.register("before-send.s3", self._send)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Takes over the requests of this thread."""
        self._own.on = True
        try:
            yield
        finally:
            self._own.on = False

    def close(self) -> None:
        """Ends idle connections; another request opens new ones."""
        self._pool.close()

    def _without_digest(self, params: Any, **_: Any) -> None:
        """Says that the body has a checksum. Over TLS botocore signs without a SHA-256 of the body then: that would be a second one, and
        take longer than the encryption."""
        if getattr(self._own, "on", False) and CRC32 in params["headers"]:
            params["context"]["checksum"] = {"request_algorithm": {"algorithm": "crc32", "in": "header", "name": CRC32}}

    def _send(self, request: Any, **_: Any) -> Any:
        if not getattr(self._own, "on", False) or not self._can(request):
            return None
        from botocore.awsrequest import AWSResponse

        parts = urlsplit(request.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        place = Server(parts.hostname or "", port, parts.scheme == "https")
        body = request.body.view if isinstance(request.body, Payload) else None
        with as_botocore(request.url):
            connection = self._pool.take(place)
            try:
                head = connection.ask(
                    _head(request, parts.netloc, f"{parts.path or '/'}{'?' * bool(parts.query)}{parts.query}"), body
                )
                raw = self._raw(request, connection, head)
            except BaseException:
                connection.close()
                raise
        headers: Any = head.headers
        return AWSResponse(request.url, head.status, headers, raw)

    def _can(self, request: Any) -> bool:
        from botocore.utils import get_environ_proxies

        return (
            (request.body is None or isinstance(request.body, Payload))
            and not getattr(self._client._endpoint.http_session, "_cert_file", None)
            and not get_environ_proxies(request.url)
        )

    def _raw(self, request: Any, connection: Connection, head: Head) -> Body | Whole:
        keep = head.headers.get("connection", "").lower() != "close"
        if "chunked" in head.headers.get("transfer-encoding", "").lower():
            content = connection.chunks()
            self._pool.give(connection) if keep else connection.close()
            return Whole(content)
        length = head.headers.get("content-length", "0")
        if not length.isdigit():
            raise Cut(f"an answer of {length!r} bytes")
        bodiless = request.method == "HEAD" or head.status == 204
        return Body(request.url, connection, self._pool, 0 if bodiless else int(length), keep=keep)

    def _connect(self, place: Server) -> Connection:
        if place.tls and self._context is None:
            self._context = _context(self._client._endpoint.http_session._verify)
        context, config = self._context if place.tls else None, self._client.meta.config
        return Connection(place, context, connect_s=config.connect_timeout, read_s=config.read_timeout)


def _context(verify: Any) -> ssl.SSLContext:
    """Trusts whom the client trusts: botocore's authorities, or those of the file that it was given."""
    from botocore.httpsession import get_cert_path

    if not verify:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
    return ssl.create_default_context(cafile=get_cert_path(verify))


def _head(request: Any, host: str, target: str) -> bytes:
    """Without `Expect`: the answer to it would cost a round trip, and a body that is not wanted costs little."""
    lines = [f"{request.method} {target} HTTP/1.1", f"Host: {host}"]
    headers = {_text(name): _text(value) for name, value in request.headers.items()}
    if request.method == "PUT":
        headers.setdefault("Content-Length", "0")
    lines += [f"{name}: {value}" for name, value in headers.items() if name.lower() not in ("expect", "host")]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


@contextmanager
def as_botocore(url: str) -> Iterator[None]:
    """Says of a connection what botocore says: it repeats a request then, and the agent knows these errors."""
    from botocore.exceptions import ConnectionClosedError, EndpointConnectionError, ReadTimeoutError, SSLError

    try:
        yield
    except ssl.SSLError as problem:
        raise SSLError(endpoint_url=url, error=problem) from problem
    except TimeoutError as problem:
        raise ReadTimeoutError(endpoint_url=url, error=problem) from problem
    except ConnectionRefusedError as problem:
        raise EndpointConnectionError(endpoint_url=url, error=problem) from problem
    except ConnectionError as problem:
        raise ConnectionClosedError(endpoint_url=url, error=problem) from problem
    except OSError as problem:
        raise EndpointConnectionError(endpoint_url=url, error=problem) from problem
