"""Writes and reads parts of open files; helpers have nothing else of the agent, so neither has this."""

from __future__ import annotations

import os
from collections.abc import Iterator

from agent.engine.crc import crc32

WINDOW = 256 * 1024
"""Bytes that are read, hashed and sent, or received, hashed and written, at a time: they stay in the processor's cache."""
HOLE = 64 * 1024
"""Bytes of zeros that become a hole."""
ZEROS = bytes(HOLE)


class Shorter(OSError):
    """A file ends before the part that was wanted of it."""


def fill(file: int, view: memoryview, start: int) -> None:
    """Reads bytes from `start` on until `view` is full. Raises Shorter."""
    have = 0
    while have < len(view):
        got = os.preadv(file, [view[have:]], start + have)
        if not got:
            raise Shorter(f"the file ends before byte {start + len(view)}")
        have += got


def windows(file: int, start: int, size: int, buffer: memoryview) -> Iterator[memoryview]:
    """Yields a part of a file piece by piece; each is in `buffer`, and gone with the next. Raises Shorter."""
    for at in range(0, size, len(buffer)):
        piece = buffer[: min(len(buffer), size - at)]
        fill(file, piece, start + at)
        yield piece


def checksum(file: int, start: int, size: int, buffer: memoryview) -> int:
    """Returns the CRC32 of a part of a file. Raises Shorter."""
    crc = 0
    for piece in windows(file, start, size, buffer):
        crc = crc32(piece, crc)
    return crc


def write(file: int, content: memoryview, start: int) -> None:
    """Writes a part of a new file, but for zeros: where nothing is written a file has a hole, which reads as zeros and takes no room."""
    begin = end = 0
    while end < len(content):
        block = content[end : end + HOLE]
        if content[end] or block != ZEROS[: len(block)]:
            end += len(block)
            continue
        write_all(file, content[begin:end], start + begin)
        begin = end = end + len(block)
    write_all(file, content[begin:], start + begin)


def write_all(file: int, content: memoryview, start: int) -> None:
    """Writes all bytes, zeros as well."""
    done = 0
    while done < len(content):
        done += os.pwrite(file, content[done:], start + done)
