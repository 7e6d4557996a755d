"""The home bucket as grids see it: the plan, the records, and what is made of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, islice
from typing import IO

from aws.clients import SIDE_BY_SIDE
from aws.errors import Raced
from aws.s3 import Bucket, as_json
from contract.codec import decode, encode
from contract.grid import SHARD, Grid, GridPrefix, Line, Record

AT_ONCE = 16
"""Objects read side by side."""
PAGE = 1000
"""Records in memory at a time."""


class GridStore(Bucket):
    """Reads and writes the contract's documents of grids. Raises ClientError, BotoCoreError, or Garbled where a document is."""

    def __init__(self, bucket: str) -> None:
        super().__init__(bucket, config=SIDE_BY_SIDE)

    def grid(self, grid: str) -> Grid | None:
        """None where nothing was planned under that name, or not to its end."""
        body = self.get(GridPrefix(grid).description)
        return None if body is None else decode(Grid, body)

    def lines(self, grid: str, indices: Iterable[int]) -> Iterator[Line]:
        """In the order of `indices`, which has to be ascending; one object of the plan in memory at a time."""
        for shard, wanted in groupby(indices, lambda index: index // SHARD):
            body = self.get(GridPrefix(grid).lines(shard * SHARD))
            written = body.splitlines() if body else []
            for index in wanted:
                yield decode(Line, written[index % SHARD])

    def recorded(self, grid: Grid) -> bytearray:
        """For each line, 1 where its record exists."""
        prefix, found = GridPrefix(grid.id), bytearray(grid.lines)
        for key, _, _ in self.listed(prefix.records):
            index = _index(key, prefix)
            if 0 <= index < grid.lines:
                found[index] = 1
        return found

    def records(self, grid: Grid) -> Iterator[Record]:
        """All records by index, with one page of them in memory."""
        return (decode(Record, body) for body in self.record_bodies(grid))

    def record_bodies(self, grid: Grid) -> Iterator[bytes]:
        """The same as they are written."""
        prefix = GridPrefix(grid.id)
        keys = (key for key, _, _ in self.listed(prefix.records) if 0 <= _index(key, prefix) < grid.lines)
        while page := list(islice(keys, PAGE)):
            with ThreadPoolExecutor(AT_ONCE) as pool:
                bodies = list(pool.map(self.get, page))
            yield from (body for body in bodies if body is not None)

    def record(self, grid: Grid, record: Record) -> None:
        """Writes the record, unless there is one: the first is final."""
        self.ensure(GridPrefix(grid.id).record(record.index), encode(record))

    def work(self, grid: str, round_: int, indices: Sequence[int]) -> list[int]:
        """The lines of a round: `indices`, unless the round has its lines already."""
        key = GridPrefix(grid).work(round_)
        self.ensure(key, json.dumps(list(indices)).encode())
        written: list[int] = json.loads(self.get(key) or b"[]")
        return written

    def stop(self, grid: str, why: str, now: float) -> float:
        """Forbids children to create trainings. Returns when that was first done, UTC epoch seconds."""
        key = GridPrefix(grid).stopped
        try:
            self.create(key, as_json({"at": now, "why": why}))
        except Raced:
            return float(json.loads(self.get(key) or b"{}").get("at", now))
        return now

    def put_file(self, key: str, file: IO[bytes], kind: str) -> None:
        """Uploads at most 5 GB, from the file's current position."""
        self._client.put_object(Bucket=self.name, Key=key, Body=file, ContentType=kind)


def _index(key: str, prefix: GridPrefix) -> int:
    """-1 for a key that GridPrefix.record did not make."""
    number = key.removeprefix(prefix.records).removesuffix(".json")
    return int(number) if number.isascii() and number.isdecimal() and key == prefix.record(int(number)) else -1
