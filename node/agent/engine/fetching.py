"""Fetches files: several requests side by side, the parts of a large file in any order, each checked as it comes."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from agent.engine.blocks import SharedBlocks
from agent.engine.extents import WINDOW, windows, write
from agent.engine.moving import Extent, Mover
from agent.engine.tree import Tree
from agent.engine.wanted import Piece, Span, Unusable, count_parts, part_of, plan_reads
from contract.commits import CommittedFile, digest_parts

AHEAD = 4
"""Requests that wait for each thread: a commit may claim to have any number of parts."""


class Large:
    """A file that comes in parts, any of them first."""

    def __init__(self, file: CommittedFile, tree: Tree) -> None:
        self._file, self._tree, self._turn = file, tree, threading.Lock()
        self._crcs, self._left = dict[int, int](), count_parts(file)
        self._open: int | None = None

    def open(self) -> int:
        with self._turn:
            if self._open is None:
                self._open = self._tree.create(self._file.path)
            return self._open

    def take(self, start: int, crcs: Sequence[int]) -> None:
        """Takes note of parts from byte `start` on. Raises Unusable where the last ones make another file than was committed."""
        with self._turn:
            self._crcs |= dict(enumerate(crcs, start // part_of(self._file)))
            self._left -= len(crcs)
            if self._left:
                return
        file = self.open()
        if self._file.sha256:  # of an agent before this one, or of one part
            digest, buffer = hashlib.sha256(), memoryview(bytearray(WINDOW))
            os.ftruncate(file, self._file.size)
            for piece in windows(file, 0, self._file.size, buffer):
                digest.update(piece)
            finish(file, self._file, digest.hexdigest())
        else:
            finish(
                file,
                self._file,
                digest_parts(self._file.size, part_of(self._file), (crc for _, crc in sorted(self._crcs.items()))),
            )
        self.close()

    def close(self) -> None:
        with self._turn:
            if self._open is not None:
                os.close(self._open)
                self._open = None


class Fetching:
    """One call of `Engine.fetch`."""

    def __init__(self, mover: Mover, tree: Tree, failed: threading.Event) -> None:
        self._mover, self._tree, self._failed = mover, tree, failed
        self._blocks = SharedBlocks()
        self._large: dict[str, Large] = {}

    def run(self, files: Sequence[CommittedFile], threads: int) -> None:
        ahead, jobs = threading.BoundedSemaphore(threads * AHEAD), list[Future[None]]()

        def one(read: Span | Piece) -> None:
            try:
                if not self._failed.is_set():
                    self._span(read) if isinstance(read, Span) else self._part(read)
            except BaseException:
                self._failed.set()
                raise
            finally:
                ahead.release()

        try:
            with ThreadPoolExecutor(threads, "fetcher") as pool:
                for request in plan_reads(files, threads):
                    ahead.acquire()
                    if self._failed.is_set():
                        break
                    jobs.append(pool.submit(one, request))
                    if len(jobs) > 1000:
                        jobs = [job for job in jobs if not job.done() or job.exception()]
                wait(jobs)
        finally:
            for large in self._large.values():
                large.close()
            self._blocks.close()
        problems = [problem for job in jobs if (problem := job.exception())]
        if problems:  # of several, what a caller can act on
            raise next((one for one in problems if not isinstance(one, Unusable)), problems[0])

    def _span(self, span: Span) -> None:
        with self._blocks.take() as block:
            size = span.end - span.start
            if size:
                self._mover.get(span.key, span.start, block.extent(size), size)
            for file in span.files:
                piece = block.bytes[file.offset - span.start :][: file.size]
                target = self._tree.create(file.path)
                try:
                    write(target, piece, 0)
                    finish(target, file, hashlib.sha256(piece).hexdigest())
                finally:
                    os.close(target)

    def _part(self, part: Piece) -> None:
        large = self._large.setdefault(part.file.path, Large(part.file, self._tree))
        into = Extent(large.open(), part.start, part.end - part.start)
        crcs = self._mover.get(part.file.key, part.file.offset + part.start, into, part_of(part.file))
        if not self._failed.is_set():
            large.take(part.start, crcs)


def finish(file: int, wanted: CommittedFile, digest: str) -> None:
    """Gives a file its size, mode and time. Raises Unusable where it is another one than was committed."""
    if digest != wanted.digest:
        raise Unusable(f"{wanted.path!r} differs from what was committed")
    os.ftruncate(file, wanted.size)  # it may end with a hole
    os.fchmod(file, wanted.mode & 0o777)
    if wanted.mtime_us:
        os.utime(file, ns=(wanted.mtime_us * 1000, wanted.mtime_us * 1000))
