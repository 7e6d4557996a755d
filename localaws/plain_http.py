"""Answers HTTP/1.1 for small servers: each answer is whole, and none is logged."""

from __future__ import annotations

from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler


class PlainHandler(BaseHTTPRequestHandler):
    """A subclass has a method for each verb, such as `do_GET`."""

    protocol_version = "HTTP/1.1"

    def body(self) -> bytes:
        """Returns the request's body."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""
