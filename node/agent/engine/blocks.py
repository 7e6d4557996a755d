"""Memory that helpers reach as a file: what small files are gathered in, or come back in."""

from __future__ import annotations

import mmap
import os
import queue
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from agent.engine.moving import Extent

BLOCK = 8 * 1024 * 1024
"""Bytes of one."""
MOST = 6
"""How many one send or fetch holds: small files keep the agent's own thread busy, not the network."""


class SharedBlock:
    """A file without a name or a place on any disk, and its bytes."""

    def __init__(self) -> None:
        self.file = os.memfd_create("trainyard")
        os.ftruncate(self.file, BLOCK)  # what is never written takes no memory
        self._map = mmap.mmap(self.file, BLOCK)
        self.bytes = memoryview(self._map)

    def extent(self, size: int) -> Extent:
        """Its first bytes."""
        return Extent(self.file, 0, size, self.bytes[:size])

    def close(self) -> None:
        self.bytes.release()
        with suppress(BufferError):  # an extent of it is in the traceback of an error
            self._map.close()
        os.close(self.file)


class SharedBlocks:
    """As many as `MOST`; who takes one waits until one is free. Any thread may take."""

    def __init__(self) -> None:
        self._free = queue.SimpleQueue[SharedBlock | None]()
        self._all = list[SharedBlock]()
        for _ in range(MOST):
            self._free.put(None)

    @contextmanager
    def take(self) -> Iterator[SharedBlock]:
        block = self._free.get()
        try:
            if block is None:
                block = SharedBlock()
                self._all.append(block)
            yield block
        finally:
            self._free.put(block)

    def close(self) -> None:
        """Once no thread has a block any more."""
        while self._all:
            self._all.pop().close()
