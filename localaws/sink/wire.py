"""HTTP/1.1 as S3's clients speak it: requests with a length or in aws-chunked pieces, over connections that stay open."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from localaws.sink.loop import Channel, Waiting

MOST_HEAD, READ, SMALL = 64 * 1024, 64 * 1024, 4096
KEPT = 64 * 1024 * 1024


class Bad(ConnectionError):
    """The other side does not speak HTTP as it should, or went away in the middle."""


@dataclass
class Request:
    """A request whose body is still to be read."""

    method: str
    bucket: str
    key: str
    query: dict[str, str]
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes | bytearray = b""
    trailers: dict[str, str] = field(default_factory=dict)

    @property
    def length(self) -> int:
        return int(self.headers.get("content-length", "0"))


class Connection:
    """Reads requests and writes answers, one after the other; its generators yield to the loop."""

    def __init__(self, channel: Channel, *, forgetful: bool = False) -> None:
        self._channel, self._ahead = channel, b""
        self._scratch = memoryview(bytearray(READ))
        self._forgotten = bytearray(KEPT) if forgetful else None

    def head(self) -> Generator[str | float, None, Request]:
        """The next request without its body."""
        while (end := self._ahead.find(b"\r\n\r\n")) < 0:
            if len(self._ahead) > MOST_HEAD:
                raise Bad("a head without an end")
            yield from self._more()
        lines = self._ahead[:end].decode("latin-1").split("\r\n")
        self._ahead = self._ahead[end + 4 :]
        method, target, _ = lines[0].split(" ")
        path, _, query = target.partition("?")
        bucket, _, key = path.lstrip("/").partition("/")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        return Request(method, bucket, unquote(key), dict(parse_qsl(query, keep_blank_values=True)), headers)

    def body(self, request: Request, *, most: int | None = None) -> Waiting:
        """Reads the body into the request, `most` bytes of it at the most."""
        if request.headers.get("expect", "").lower() == "100-continue":
            yield from self._channel.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "chunked" in request.headers.get("transfer-encoding", ""):
            request.body = yield from self._chunked()
        else:
            size = request.length if most is None else min(most, request.length)
            request.body = yield from self._exactly(size, whole=most is None)
        if "aws-chunked" in request.headers.get("content-encoding", "") and most is None:
            request.body, request.trailers = _unchunked(bytes(request.body))

    def answer(
        self, status: int, headers: dict[str, str], body: list[memoryview], *, bodiless: bool = False
    ) -> Waiting:
        """Writes an answer; one to HEAD tells of a body that it does not have."""
        size = sum(map(len, body))
        length = "" if "Content-Length" in headers else f"Content-Length: {size}\r\n"
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status} x\r\n{lines}{length}\r\n".encode("latin-1")
        small = b"" if bodiless or size > SMALL else b"".join(body)
        yield from self._channel.send(head + small)
        if size > SMALL and not bodiless:
            for piece in body:
                yield from self._channel.send(piece)

    def raw(self, content: bytes) -> Waiting:
        yield from self._channel.send(content)

    def _more(self) -> Waiting:
        got = yield from self._channel.read_into(self._scratch)
        self._ahead += bytes(self._scratch[:got])

    def _exactly(self, size: int, *, whole: bool = True) -> Generator[str | float, None, bytearray]:
        content = bytearray(size) if self._forgotten is None or size > KEPT or not whole else self._forgotten
        view, have = memoryview(content)[:size], min(size, len(self._ahead))
        view[:have] = self._ahead[:have]
        self._ahead = self._ahead[have:]
        while have < size:
            have += yield from self._channel.read_into(view[have:])
        return content if len(content) == size else content[:size]

    def _line(self) -> Generator[str | float, None, bytes]:
        while (end := self._ahead.find(b"\r\n")) < 0:
            yield from self._more()
        line, self._ahead = self._ahead[:end], self._ahead[end + 2 :]
        return line

    def _chunked(self) -> Generator[str | float, None, bytearray]:
        content = bytearray()
        while size := int((yield from self._line()).partition(b";")[0], 16):
            content += yield from self._exactly(size)
            yield from self._line()
        while (yield from self._line()):
            pass
        return content


def _unchunked(raw: bytes) -> tuple[bytearray, dict[str, str]]:
    content, at = bytearray(), 0
    while True:
        end = raw.index(b"\r\n", at)
        size = int(raw[at:end].partition(b";")[0], 16)
        at = end + 2
        if not size:
            break
        content += raw[at : at + size]
        at += size + 2
    lines = [line for line in raw[at:].decode().split("\r\n") if line]
    return content, {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
