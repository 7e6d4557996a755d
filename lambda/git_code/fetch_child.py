"""The program that asks a git host, in a process of its own: what a stranger's server sends is read where there are no credentials of AWS
in the environment, and with limits on memory, time and disk."""

from __future__ import annotations

import json
import os
import re
import resource
import ssl
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

import urllib3
from dulwich.client import Urllib3HttpGitClient
from dulwich.errors import GitProtocolError, HangupException
from dulwich.object_store import DiskObjectStore, ObjectStoreGraphWalker
from dulwich.objects import Blob, Commit, ObjectID, Tree

from contract.archives import Refused
from git_code.commit import FETCH_S, MIB, MOST_PACK, FetchTrouble, NotFetched
from git_code.tree import TooMuch, files, write

MOST_MEMORY = 768 * MIB
MOST_DISK = 384 * MIB
"""The largest file that the process may write."""
CONNECT_S, READ_S = 5.0, 30.0
AGAIN = urllib3.Retry(
    total=2,
    read=0,
    redirect=0,
    status_forcelist=(429, 502, 503, 504),
    backoff_factor=0.5,
    allowed_methods=None,
    raise_on_status=False,
    raise_on_redirect=False,
    respect_retry_after_header=False,
)
"""A fetch changes nothing at the host, so it may be asked again."""
MOST_WORDS = 300
"""The most bytes of an error's page that are read."""
NO_SUCH = re.compile(r"not our ref|unadvertised object|no such ref|does not exist", re.IGNORECASE)
"""How hosts say that they lack a commit."""
USER = "x-access-token"
"""The user beside a token that names none: GitHub and GitLab take any."""


class Answered(Exception):
    """The host answered with something else than what was asked for."""

    def __init__(self, trouble: FetchTrouble, said: str) -> None:
        super().__init__(said)
        self.trouble, self.said = trouble, said


class OneHost:
    """What dulwich takes for a pool of connections. Asks one host alone, whatever a server's answer names, and follows no redirect."""

    def __init__(self, host: str, variables: Mapping[str, str]) -> None:
        self.headers: dict[str, str] = {}
        self._host = host
        options: dict[str, Any] = {
            "ssl_context": ssl.create_default_context(),
            "timeout": urllib3.Timeout(connect=CONNECT_S, read=READ_S),
            "retries": AGAIN,
        }
        proxy = variables.get("HTTPS_PROXY") or variables.get("https_proxy")
        self._pool = urllib3.ProxyManager(proxy, **options) if proxy else urllib3.PoolManager(**options)

    def request(self, method: str, url: str, **options: Any) -> urllib3.BaseHTTPResponse:
        """Raises Answered unless the answer is 200."""
        target = urlsplit(url)
        if target.scheme != "https" or target.netloc != self._host:
            raise Answered(FetchTrouble.MOVED, url)
        answer = self._pool.request(method, url, redirect=False, **options)
        if answer.status == 200:
            return answer
        if 300 <= answer.status < 400:
            raise Answered(FetchTrouble.MOVED, answer.headers.get("Location") or str(answer.status))
        words = self._words(answer)
        if answer.status in (401, 403, 404):
            raise Answered(FetchTrouble.DENIED, words)
        raise Answered(FetchTrouble.AWAY, f"it answers {words}")

    @staticmethod
    def _words(answer: urllib3.BaseHTTPResponse) -> str:
        plain = answer.headers.get("Content-Type", "").startswith("text/plain")
        said = answer.read(MOST_WORDS).decode(errors="replace").strip() if plain else ""
        return f"{answer.status}: {said}" if said else str(answer.status)


class Counted:
    """A file that takes no more than `most` bytes."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file, self._most = file, most
        self.size = 0

    def write(self, data: bytes) -> int:
        """Raises TooMuch."""
        self.size += len(data)
        if self.size > self._most:
            raise TooMuch(f"more than {self._most:,} bytes, as git sends them")
        return self._file.write(data)


def fetch(url: str, commit: str, token: str, archive: Path, work: Path) -> NotFetched | None:
    """Writes the commit's archive; returns why there is none."""
    try:
        store = DiskObjectStore.init(work)
        _receive(url, ObjectID(commit.encode()), token, store)
        found = store[ObjectID(commit.encode())]
        if not isinstance(found, Commit):
            return NotFetched(FetchTrouble.NO_TREE, found.type_name.decode())
        with archive.open("wb") as sink:
            listed = files(found.tree, lambda sha: _folder(store, sha))
            write(listed, lambda sha: _content(store, sha), sink, committed=found.commit_time)
    except Exception as problem:
        return _about(problem)
    return None


def find_head(url: str, branch: str, token: str) -> str | NotFetched:
    """Returns the commit at the end of the branch, or why it is not known."""
    name = f"refs/heads/{branch}".encode()
    try:
        refs = _connect(url, token).get_refs(urlsplit(url).path, ref_prefix=[name]).refs
    except Exception as problem:
        return _about(problem)
    found = refs.get(cast("Any", name))
    return found.decode() if found else NotFetched(FetchTrouble.NO_BRANCH, branch)


def _about(problem: BaseException) -> NotFetched:
    """Describes an error. Those of dulwich's readers (zlib.error, struct.error, KeyError ...) are about what the host sent."""
    if isinstance(problem, Answered):
        return NotFetched(problem.trouble, problem.said)
    if isinstance(problem, TooMuch):
        return NotFetched(FetchTrouble.LARGE, str(problem))
    if isinstance(problem, Refused):
        return NotFetched(FetchTrouble.REFUSED, str(problem))
    behind: list[BaseException] = [problem]
    while (cause := behind[-1].__cause__ or behind[-1].__context__) is not None:
        behind.append(cause)
    if any(isinstance(one, MemoryError) for one in behind):
        return NotFetched(FetchTrouble.LARGE, "it takes more memory than the fetch has")
    if found := next((one for one in behind if isinstance(one, urllib3.exceptions.HTTPError)), None):
        return NotFetched(FetchTrouble.AWAY, str(getattr(found, "reason", None) or found))
    return NotFetched(FetchTrouble.BROKEN, f"{type(problem).__name__}: {problem}")


def _receive(url: str, commit: ObjectID, token: str, store: DiskObjectStore) -> None:
    """Asks for one commit without its history, and keeps the pack. The references of the repository do not matter."""
    client = _connect(url, token)

    def wanted(refs: Mapping[Any, ObjectID], depth: int | None = None) -> list[ObjectID]:  # noqa: ARG001
        return [commit]

    file, keep, drop = store.add_pack()
    taken = Counted(file, MOST_PACK)
    try:
        client.fetch_pack(
            urlsplit(url).path,
            wanted,
            ObjectStoreGraphWalker([], lambda _: [], shallow=set()),
            taken.write,
            progress=lambda _: None,
            depth=1,
            ref_prefix=[b"HEAD"],
        )
    except (HangupException, GitProtocolError) as problem:
        with suppress(OSError):
            drop()
        said = str(problem)
        if not taken.size and (isinstance(problem, HangupException) or NO_SUCH.search(said)):
            raise Answered(FetchTrouble.NO_COMMIT, "" if isinstance(problem, HangupException) else said) from None
        raise
    keep()


def _connect(url: str, token: str) -> Urllib3HttpGitClient:
    user, colon, password = token.partition(":")
    user, password = (user, password) if colon else (USER, token)
    pool = cast("Any", OneHost(urlsplit(url).netloc, os.environ))
    return Urllib3HttpGitClient(
        url, pool_manager=pool, username=user if token else None, password=password if token else None
    )


def _folder(store: DiskObjectStore, sha: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    found = store[ObjectID(sha)]
    if not isinstance(found, Tree):
        raise Refused(f"has a folder that is a {found.type_name.decode()}")
    for entry in found.iteritems():
        path, mode, inner = entry
        assert path is not None
        assert mode is not None
        assert inner is not None
        yield path, mode, inner


def _content(store: DiskObjectStore, sha: bytes) -> bytes:
    found = store[ObjectID(sha)]
    if not isinstance(found, Blob):
        raise Refused(f"has a file that is a {found.type_name.decode()}")
    return found.data


def main() -> None:
    """Reads from its input, as JSON, which commit to fetch or which branch to find, and answers in a line of JSON."""
    for limit, most in (
        (resource.RLIMIT_AS, MOST_MEMORY),
        (resource.RLIMIT_FSIZE, MOST_DISK),
        (resource.RLIMIT_CPU, int(FETCH_S)),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (most, most))
    json.dump(answer(json.load(sys.stdin)), sys.stdout)


def answer(order: Mapping[str, str]) -> dict[str, str]:
    """Carries an order out; returns the document that `main` prints: what was asked for, or `trouble` and what was `said`."""
    found = _carry_out(order)
    return {"trouble": found.trouble.value, "said": found.said[:1000]} if isinstance(found, NotFetched) else found


def _carry_out(order: Mapping[str, str]) -> dict[str, str] | NotFetched:
    if branch := order.get("branch"):
        head = find_head(order["url"], branch, order["token"])
        return head if isinstance(head, NotFetched) else {"commit": head}
    archive = Path(order["archive"])
    with tempfile.TemporaryDirectory(dir=archive.parent) as work:
        return fetch(order["url"], order["commit"], order["token"], archive, Path(work)) or {}
