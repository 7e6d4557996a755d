"""Fetches files: several requests side by side, each file hashed in order as its bytes come, and never read again."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing

from botocore.exceptions import ClientError, HTTPClientError, IncompleteReadError

from agent.engine.bodies import CONNECTIONS, receive
from agent.engine.tree import Tree
from agent.engine.wanted import Piece, Span, Unusable, check, plan_reads
from agent.store import Store
from contract.aws_errors import code_of
from contract.commits import CommittedFile

TRIES, PAUSE_S = 6, 0.5
"""For an answer that breaks off; boto3 repeats what is not answered at all."""
AHEAD = 4 * CONNECTIONS
"""Requests that wait for a thread: a commit may claim to have any number of parts."""
OUTSIDE = ("InvalidRange", "416")
HOLE = 64 * 1024
"""Bytes of zeros that become a hole."""
ZEROS = bytes(HOLE)


class Large:
    """A file that comes in parts, any of them first; they are hashed in order."""

    def __init__(self, file: CommittedFile, tree: Tree) -> None:
        self._file, self._tree = file, tree
        self._turn, self._digest, self._hashed = threading.Condition(), hashlib.sha256(), 0
        self._open: int | None = None

    def write(self, start: int, content: memoryview, failed: Callable[[], bool]) -> None:
        """Writes a part into its place, and hashes it when all before it have been. Raises Unusable once the digest is another."""
        with self._turn:
            if self._open is None:
                self._open = self._tree.create(self._file.path)
            file = self._open
        write(file, content, start)
        with self._turn:
            while self._hashed != start and not failed():
                self._turn.wait(0.2)
        if failed():
            return
        self._digest.update(content)
        with self._turn:
            self._hashed += len(content)
            is_last = self._hashed == self._file.size  # of all threads that see it so, the one that made it so
            self._turn.notify_all()
        if is_last:
            finish(file, self._file, self._digest.hexdigest())
            self.close()

    def close(self) -> None:
        with self._turn:
            if self._open is not None:
                os.close(self._open)
                self._open = None


class Fetching:
    """One call of `Engine.fetch`."""

    def __init__(self, store: Store, tree: Tree, *, sleep: Callable[[float], None]) -> None:
        self._store, self._tree, self._sleep = store, tree, sleep
        self._failed, self._ahead = threading.Event(), threading.BoundedSemaphore(AHEAD)
        self._blocks = threading.local()
        self._large: dict[str, Large] = {}

    def run(self, files: Sequence[CommittedFile]) -> None:
        check(files)
        jobs = list[Future[None]]()
        try:
            with ThreadPoolExecutor(CONNECTIONS, "fetcher") as pool:
                for request in plan_reads(files):
                    self._ahead.acquire()
                    if self._failed.is_set():
                        break
                    jobs.append(pool.submit(self._one, request))
                    if len(jobs) > 1000:
                        jobs = [job for job in jobs if not job.done() or job.exception()]
                wait(jobs)
        finally:
            for large in self._large.values():
                large.close()
        problems = [problem for job in jobs if (problem := job.exception())]
        if problems:  # of several, what a caller can act on
            raise next((one for one in problems if not isinstance(one, Unusable)), problems[0])

    def _one(self, read: Span | Piece) -> None:
        try:
            if self._failed.is_set():
                return
            if isinstance(read, Span):
                self._span(read)
            else:
                self._part(read)
        except BaseException:
            self._failed.set()
            raise
        finally:
            self._ahead.release()

    def _span(self, span: Span) -> None:
        content = self._block(span.end - span.start)
        if content:
            self._get(span.key, span.start, content)
        for file in span.files:
            piece = content[file.offset - span.start :][: file.size]
            target = self._tree.create(file.path)
            try:
                write(target, piece, 0)
                finish(target, file, hashlib.sha256(piece).hexdigest())
            finally:
                os.close(target)

    def _part(self, part: Piece) -> None:
        content = self._block(part.end - part.start)
        self._get(part.file.key, part.file.offset + part.start, content)
        large = self._large.setdefault(part.file.path, Large(part.file, self._tree))
        large.write(part.start, content, self._failed.is_set)

    def _block(self, size: int) -> memoryview:
        """This thread's own memory."""
        if len(getattr(self._blocks, "own", b"")) < size:
            self._blocks.own = memoryview(bytearray(size))
        own: memoryview = self._blocks.own if size else memoryview(b"")
        return own[:size]

    def _get(self, key: str, start: int, into: memoryview) -> None:
        """Raises Unusable where the object is not there, or ends before."""
        for attempt in range(1, TRIES + 1):
            try:
                self._once(key, start, into)
            except (HTTPClientError, IncompleteReadError):
                if attempt == TRIES or self._failed.is_set():
                    raise
                self._sleep(PAUSE_S * attempt)
            else:
                return

    def _once(self, key: str, start: int, into: memoryview) -> None:
        where = f"s3://{self._store.bucket}/{key}"
        try:
            told = f"bytes={start}-{start + len(into) - 1}"
            answer = self._store.client.get_object(Bucket=self._store.bucket, Key=key, Range=told)
        except ClientError as problem:
            if code_of(problem) in OUTSIDE:
                raise Unusable(f"{where} ends before byte {start}") from None
            if self._store.lacks(key, problem):
                raise Unusable(f"{where} is missing") from None
            raise
        with closing(answer["Body"]) as body:
            if answer["ContentLength"] != len(into):
                raise Unusable(f"{where} ends before byte {start + len(into)}")
            receive(into, body)


def write(file: int, content: memoryview, start: int) -> None:
    """Writes a part of a new file, but for zeros: where nothing is written a file has a hole, which reads as zeros and takes no room."""
    begin = end = 0
    while end < len(content):
        block = content[end : end + HOLE]
        if content[end] or block != ZEROS[: len(block)]:
            end += len(block)
            continue
        _write(file, content[begin:end], start + begin)
        begin = end = end + len(block)
    _write(file, content[begin:], start + begin)


def _write(file: int, content: memoryview, start: int) -> None:
    done = 0
    while done < len(content):
        done += os.pwrite(file, content[done:], start + done)


def finish(file: int, wanted: CommittedFile, sha256: str) -> None:
    """Gives a file its size, mode and time. Raises Unusable where it is another one than was committed."""
    if sha256 != wanted.sha256:
        raise Unusable(f"{wanted.path!r} differs from what was committed")
    os.ftruncate(file, wanted.size)  # it may end with a hole
    os.fchmod(file, wanted.mode & 0o777)
    if wanted.mtime_us:
        os.utime(file, ns=(wanted.mtime_us * 1000, wanted.mtime_us * 1000))
