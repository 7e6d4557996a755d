"""What reads archives of strangers: how much of one may be taken into memory before anything of it was checked."""

from __future__ import annotations

import sys
from typing import Any

MOST_HEADER = 1024**2
"""Bytes of one entry's own description in a tar."""


class TooLarge(ValueError):
    """An archive's own description of its entries is larger than what is read of one."""


class Metered:
    """A file of which only so much may be read until the next allowance.

    Both formats, tar and zip, say in a header how much of it is to be taken into memory, and the header may lie.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self.left = sys.maxsize
        self.last = b""
        """What was read last."""

    def read(self, size: int = -1) -> bytes:
        """Raises TooLarge where more is asked for, and there, than is left."""
        data: bytes = self._file.read(size if 0 <= size <= self.left else min(self.left, sys.maxsize - 1) + 1)
        if len(data) > self.left:
            raise TooLarge("its description of its entries is larger than any honest one")
        self.left -= len(data)
        self.last = data
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
