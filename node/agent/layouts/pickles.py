"""Reads names and numbers out of a pickle without unpickling it: pickletools names its opcodes, and none is carried out."""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MOST_PICKLE = 64 * 1024 * 1024
"""Bytes of torch.distributed.checkpoint's metadata that are read: what a million shards of tensors take is not."""
MOST_CODES = 1_000_000
"""Opcodes that are read, about a second's worth; from a longer metadata only the names of files are taken."""
MOST_PLAIN = 200_000
"""Opcodes of a pickle that is looked through for its end."""
TORCH = 0x1950A86A20F9469CFC6C
"""The first pickle of a file that torch.save writes without an archive: torch/serialization.py, MAGIC_NUMBER."""
MOST_SHARDS = 100_000
METADATA = b"torch.distributed.checkpoint.metadata"
ENDINGS = (b".distcp", b".safetensors")
LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.=+-")
LONGEST_NAME, MOST_ENDINGS = 200, 1_000_000
"""Bytes of a name before its ending, and how often an ending may stand in a metadata."""
TEXTS = frozenset({"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"})
NUMBERS = frozenset({"BININT", "BININT1", "BININT2", "LONG1", "LONG4", "INT", "LONG"})
PUTS, GETS = frozenset({"BINPUT", "LONG_BINPUT", "PUT"}), frozenset({"BINGET", "LONG_BINGET", "GET"})
Value = str | int | None


@dataclass(frozen=True)
class ShardList:
    """The files that a metadata of torch.distributed.checkpoint lists, relative to its folder."""

    least: Mapping[str, int]
    """By name, how many bytes the file has at least; 0 where that was not read."""


def read_shards(document: bytes) -> ShardList | None:
    """Returns the files that a metadata lists; None where the bytes are none, or not all of it."""
    if len(document) < 2 or document[0] != 0x80 or not document.endswith(b".") or METADATA not in document[:4096]:
        return None
    names = set[str]()
    for count, name in enumerate(_names(document)):
        names.add(name)
        if len(names) > MOST_SHARDS or count > MOST_ENDINGS:
            return None
    sizes = dict.fromkeys(sorted(names), 0)
    try:
        for name, end in _places(document):
            if name in sizes:
                sizes[name] = max(sizes[name], end)
    except _TooLong:
        return ShardList(dict.fromkeys(sizes, 0))
    except (ValueError, OverflowError):
        return None
    return ShardList(sizes)


def _names(document: bytes) -> Iterator[str]:
    """Yields what looks like the name of a file: each ending is looked for, and what stands before it is read backwards. A regular
    expression would try every beginning, and no other thread would run meanwhile."""
    for ending in ENDINGS:
        at, before = document.find(ending), 0
        while at >= 0:
            start = at
            while start > max(before, at - LONGEST_NAME) and document[start - 1] in LETTERS:
                start -= 1
            if start < at:
                yield document[start : at + len(ending)].decode("ascii")
            before = at + len(ending)
            at = document.find(ending, before)


def find_number(head: bytes, key: str) -> int:
    """Returns the number that follows a text in the first bytes of a pickle, as a dictionary has them; -1 where there is none."""
    before: Value = None
    try:
        for value in _values(head):
            if before == key and isinstance(value, int):
                return value
            before = value
    except (ValueError, OverflowError, _TooLong):
        pass
    return -1


def is_all_there(document: bytes) -> bool:
    """Whether the bytes are one pickle, from its beginning to its end; one with more than MOST_PLAIN opcodes is not read."""
    return document[-1:] == b"." and find_end(document) == len(document)


def find_end(document: bytes) -> int:
    """Returns how many bytes the first pickle of a file has: 0 where its end is still to come, or the bytes are none; -1 where it has more
    than MOST_PLAIN opcodes, or is the number that torch.save without an archive begins with: then more pickles follow."""
    if document[:1] != b"\x80":
        return 0
    end = -1
    try:
        for number, (code, value, at) in enumerate(pickletools.genops(document)):
            if number >= MOST_PLAIN or (code.name == "LONG1" and value == TORCH and number <= 2):
                return -1
            end = at or 0
    except (ValueError, OverflowError, IndexError, struct.error):
        return 0
    return end + 1


class _TooLong(Exception):
    """A pickle has more opcodes than are read."""


def _places(document: bytes) -> Iterator[tuple[str, int]]:
    """Yields name and end of each piece: torch pickles `_StorageInfo` as its fields in order, relative_path, offset and length
    (torch/distributed/checkpoint/filesystem.py)."""
    last = list[Value]()
    for value in _values(document):
        last = [*last[-5:], value]
        if len(last) == 6 and last[0] == "relative_path" and last[2] == "offset" and last[4] == "length":
            name, offset, length = last[1], last[3], last[5]
            if isinstance(name, str) and isinstance(offset, int) and isinstance(length, int):
                yield name, offset + length


def _values(document: bytes) -> Iterator[Value]:
    """Yields the texts and numbers of a pickle in their order."""
    memo: dict[int, Value] = {}
    newest: Value = None
    for number, (code, value, _) in enumerate(pickletools.genops(document)):
        if number >= MOST_CODES:
            raise _TooLong
        if code.name == "MEMOIZE":
            memo[len(memo)] = newest
        elif code.name in PUTS:
            memo[int(value or 0)] = newest
        elif code.name in GETS:
            newest = memo.get(int(value or 0))
            yield newest
        elif code.name in TEXTS or code.name in NUMBERS:
            newest = value if isinstance(value, str | int) else None
            yield newest
        elif code.name not in ("MARK", "FRAME", "PROTO", "SETITEM", "SETITEMS"):
            newest = None
