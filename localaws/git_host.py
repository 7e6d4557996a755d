"""Hosts of git repositories on this computer: git's own `http-backend`, behind TLS, under whatever names, reached through a proxy.

A proxy is how a client reaches a name that no resolver knows, at a port that only root may open. It ends the connection itself.
"""

from __future__ import annotations

import base64
import os
import ssl
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from localaws.peers import is_own
from localaws.plain_http import PlainHandler
from localaws.sink.certificate import certificate

SOMEONE = {"NAME": "someone", "EMAIL": "someone@example.com", "DATE": "2026-01-15T08:00:00Z"}
"""Who writes each commit, and when: the same files are the same commit."""


@dataclass(frozen=True)
class Instead:
    """An answer that comes in place of git's."""

    status: int
    body: bytes = b""
    location: str = ""
    kind: str = "text/plain; charset=utf-8"


class GitHosts:
    """A context manager. Repositories are bare ones, in `folder/HOST/OWNER/NAME.git`."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder, self.names = folder / "repositories", tuple(names)
        self.authority, chain = certificate(folder / "tls", names)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(chain)
        self.tokens: dict[str, str] = {}
        """`HOST/OWNER/NAME.git` to the `USER:TOKEN` without which the host shows nobody that it is there."""
        self.instead: Callable[[str], Instead | None] = lambda _: None
        """An answer in place of git's, by the address that is asked for."""
        self.asked: list[str] = []
        """The addresses that were asked for, oldest first."""
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.hosts = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def variables(self) -> dict[str, str]:
        """What a client has to have in its environment."""
        return {"HTTPS_PROXY": f"http://127.0.0.1:{self._server.server_port}", "SSL_CERT_FILE": str(self.authority)}

    def repository(self, address: str) -> Path:
        """Makes an empty repository at `HOST/OWNER/NAME.git`."""
        made = self.folder / address
        made.mkdir(parents=True)
        git(made, "init", "--quiet", "--bare", ".")
        return made

    def __enter__(self) -> GitHosts:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def blob(folder: Path, content: bytes) -> str:
    """Adds a file's content to a repository; returns its hash."""
    return git(folder, "hash-object", "-w", "--stdin", given=content)


def tree(folder: Path, *entries: tuple[str, bytes, str]) -> str:
    """Adds a folder of entries (mode, name, hash) to a repository, whatever git thinks of the names; returns its hash."""
    raw = b"".join(mode.encode() + b" " + name + b"\0" + bytes.fromhex(sha) for mode, name, sha in entries)
    return git(folder, "hash-object", "-t", "tree", "--literally", "-w", "--stdin", given=raw)


def commit(folder: Path, root: str) -> str:
    """Makes that folder the newest commit of the branch `main`; returns its hash."""
    made = git(folder, "commit-tree", root, "-m", "a commit")
    git(folder, "update-ref", "refs/heads/main", made)
    return made


def git(folder: Path, *words: str, given: bytes = b"") -> str:
    """Runs git in a folder, as the same person at the same time; returns what it prints."""
    who = {f"GIT_{one}_{what}": said for one in ("AUTHOR", "COMMITTER") for what, said in SOMEONE.items()}
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "HOME": str(folder)}
    done = subprocess.run(
        ["git", "-c", "gc.auto=0", *words],
        cwd=folder,
        env={"PATH": os.environ.get("PATH", ""), **who, **quiet},
        input=given,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    hosts: GitHosts

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002
        return is_own(request)


class _Handler(PlainHandler):
    server: _Server
    host = ""

    def do_CONNECT(self) -> None:
        """Ends the connection here, as if this were the host."""
        name = self.path.rpartition(":")[0]
        if name not in self.server.hosts.names:
            return self.answer(502)
        self.send_response(200)
        self.end_headers()
        self.host = name
        self.connection = self.server.hosts.context.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb")  # type: ignore[assignment]
        self.close_connection = False
        return None

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        hosts, asked = self.server.hosts, urlsplit(self.path)
        hosts.asked.append(f"{self.host}{asked.path}")
        body = self.body()
        if not self.host:
            return self.answer(400)
        if instead := hosts.instead(f"{self.host}{asked.path}"):
            told = {"Location": instead.location} if instead.location else {}
            return self.answer(instead.status, instead.body, {"Content-Type": instead.kind, **told})
        token = next((one for place, one in hosts.tokens.items() if f"{self.host}{asked.path}".startswith(place)), "")
        given = base64.b64decode(self.headers.get("Authorization", "").removeprefix("Basic ")).decode()
        if token and given != token:
            return self.answer(401, b"Repository not found.", {"Content-Type": "text/plain"})
        status, headers, said = _backend(
            hosts.folder / self.host, self.command, asked.path, asked.query, self.headers, body
        )
        with suppress(OSError):  # a client that has heard enough goes away
            self.answer(status, said, headers)
            self.wfile.flush()
        return None


def _backend(
    root: Path, method: str, path: str, query: str, headers: Any, body: bytes
) -> tuple[int, dict[str, str], bytes]:
    """Asks git as a web server does, by CGI."""
    variables = {
        "PATH": os.environ.get("PATH", ""),
        "GIT_PROJECT_ROOT": str(root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_PROTOCOL": headers.get("Git-Protocol", ""),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "CONTENT_TYPE": headers.get("Content-Type", ""),
        "CONTENT_LENGTH": str(len(body)),
        "REMOTE_ADDR": "127.0.0.1",
    }
    done = subprocess.run(["git", "http-backend"], env=variables, input=body, capture_output=True)
    head, _, said = done.stdout.partition(b"\r\n\r\n")
    told = dict(line.split(": ", 1) for line in head.decode().splitlines() if ": " in line)
    status = int(told.pop("Status", "200").split()[0])
    return status, told, said
