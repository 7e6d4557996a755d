"""Lambda's event source mapping on a stream: batches in the order of a shard, failures that hold it up, doubles, dead letters."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Protocol
from zlib import crc32

from localaws.model import Clock

Record = dict[str, Any]
KEPT_S = 86400.0
"""How long a stream keeps its records."""
RETRY_S = 1.0
PAYLOAD = 6 * 1024**2
"""Most bytes of records that one invocation takes."""
SHARDS = 4
"""Shards of a table's stream. The records of a partition key stay in their order; those of others may overtake them."""


class Failed(Exception):
    """The function failed: an error, a time-out, or no function there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A mapping's properties, as CloudFormation has them; durations are in seconds of the clock."""

    function: str
    stream: str
    fits: Callable[[Record], bool] = lambda _: True
    batch: int = 100
    window_s: float = 0.0
    at_once: int = 1
    """ParallelizationFactor: batches of a shard that are worked on side by side."""
    retries: int = -1
    age_s: float = KEPT_S
    """Older records are given up; a stream itself keeps them for a day."""
    retry_s: float = RETRY_S
    """From a failure to the next attempt."""
    bisect: bool = False
    by_item: bool = False
    """ReportBatchItemFailures."""


class Around(Protocol):
    """What a mapping needs of its surroundings."""

    @property
    def clock(self) -> Clock: ...

    def at(self, when: float, action: Callable[[], None]) -> None: ...

    def invoke(self, event: dict[str, Any]) -> Any:
        """Returns the function's answer. Raises Failed."""

    def delays(self, record: Record) -> Iterable[float]:
        """Returns after how many seconds a record is delivered, and, for a record that comes twice, delivered again."""

    def bury(self, letter: dict[str, Any]) -> None:
        """Takes the message about records that Lambda has given up, in the form of an on-failure destination."""


class Mapping:
    """One mapping; `take` receives the stream's records in their order."""

    def __init__(self, settings: Settings, around: Around) -> None:
        self.settings, self.around = settings, around
        self._lanes = [_Lane(self, number) for number in range(SHARDS * settings.at_once)]

    def take(self, record: Record) -> None:
        """A record that does not fit is passed over, and never invokes the function."""
        if self.settings.fits(record):
            key = next(iter(record["dynamodb"]["Keys"].values()))
            self._lanes[crc32(json.dumps(key).encode()) % len(self._lanes)].take(record)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A record that has not been delivered."""

    due: float
    record: Record
    again: list[float]
    """After how many seconds it is delivered again."""


class _Lane:
    """A shard, or the part of one that is worked on at a time."""

    def __init__(self, mapping: Mapping, number: int) -> None:
        self._mapping, self._around, self._number = mapping, mapping.around, number
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._last = 0.0
        self._busy = False
        self._not_before = 0.0
        self._attempts = 0
        self._part, self._suspect = 0, 0
        """The size of batches while a failed one is bisected, and how many records of it are left."""

    @property
    def _settings(self) -> Settings:
        return self._mapping.settings

    def take(self, record: Record) -> None:
        first, *again = self._around.delays(record)
        now = self._around.clock.time()
        with self._lock:
            due = self._last = max(self._last, now + first)
            self._waiting.append(_Waiting(due, record, again))
        self._around.at(due + self._settings.window_s, self._deliver)

    def _repeat(self, one: _Waiting, now: float) -> None:
        """Delivers a record again, perhaps after newer ones of its key: what comes again keeps no order."""
        for delay in one.again:
            self._around.at(now + delay, lambda: self._again(one.record))

    def _again(self, record: Record) -> None:
        try:
            self._around.invoke({"Records": [record]})
        except Failed:
            return

    def _deliver(self) -> None:
        with self._lock:
            now = self._around.clock.time()
            if self._busy or now < self._not_before:
                return
            dead = self._expired(now)
            size = self._part or self._settings.batch
            batch = _payload([one.record for one in self._waiting[:size] if one.due <= now])
            self._busy = bool(batch)
        if dead:
            self._bury(dead, "RecordAgeExceeded")
        if not batch:
            return
        try:
            failed = self._work(batch)
        except BaseException:
            self._busy = False
            raise
        self._done(batch, failed)

    def _expired(self, now: float) -> list[Record]:
        ages = [(one.record, now - one.record["dynamodb"]["ApproximateCreationDateTime"]) for one in self._waiting]
        old = [
            record for record, age in ages if age > self._settings.age_s + 1
        ]  # the time of creation is in whole seconds
        del self._waiting[: len(old)]
        return old

    def _work(self, batch: list[Record]) -> int | None:
        """Returns the place of the first record that failed, None if there is none."""
        try:
            answer = self._around.invoke({"Records": batch})
        except Failed:
            return 0
        return _first_failure(answer, batch) if self._settings.by_item else None

    def _done(self, batch: list[Record], failed: int | None) -> None:
        """A failed batch comes again before anything behind it, in halves if the mapping says so, until it is given up."""
        given_up: list[Record] = []
        with self._lock:
            self._busy = False
            done = len(batch) if failed is None else failed
            now, left = self._around.clock.time(), batch[done:]
            for one in self._waiting[:done]:
                self._repeat(one, now)
            del self._waiting[:done]
            self._attempts = 0 if done else self._attempts
            self._suspect = max(0, self._suspect - done)
            if left and self._settings.bisect and len(left) > 1:
                self._part, self._suspect = (len(left) + 1) // 2, len(left)
            elif left and 0 <= self._settings.retries <= self._attempts:
                given_up = left
                del self._waiting[: len(left)]
                self._suspect = max(0, self._suspect - len(left))
            elif left:
                self._attempts += 1
            if not self._suspect:
                self._part = 0
            invoked = self._attempts + 1
            self._attempts = 0 if given_up else self._attempts
            self._not_before = now if not left or given_up else now + self._settings.retry_s
            again = max(self._not_before, self._waiting[0].due + self._settings.window_s) if self._waiting else None
        if given_up:
            self._bury(given_up, "RetryAttemptsExhausted", invoked)
        if again is not None:
            self._around.at(again, self._deliver)

    def _bury(self, records: list[Record], why: str, invoked: int = 1) -> None:
        changes = [one["dynamodb"] for one in records]
        first, last = changes[0], changes[-1]
        self._around.bury(
            {
                "requestContext": {
                    "requestId": records[0]["eventID"],
                    "functionArn": self._settings.function,
                    "condition": why,
                    "approximateInvokeCount": invoked,
                },
                "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
                "version": "1.0",
                "timestamp": _written(self._around.clock.time()),
                "DDBStreamBatchInfo": {
                    "shardId": f"shardId-{self._number:020d}-00000000",
                    "startSequenceNumber": first["SequenceNumber"],
                    "endSequenceNumber": last["SequenceNumber"],
                    "approximateArrivalOfFirstRecord": _written(first["ApproximateCreationDateTime"]),
                    "approximateArrivalOfLastRecord": _written(last["ApproximateCreationDateTime"]),
                    "batchSize": len(records),
                    "streamArn": self._settings.stream,
                },
            }
        )


def _payload(records: list[Record]) -> list[Record]:
    """Returns as many of the records as one invocation takes, at least one."""
    sizes = itertools.accumulate(one["dynamodb"]["SizeBytes"] for one in records)
    return [one for number, (one, size) in enumerate(zip(records, sizes, strict=True)) if not number or size <= PAYLOAD]


def _first_failure(answer: Any, batch: list[Record]) -> int | None:
    """Lambda takes the lowest sequence number that the function names; one that it does not know fails the whole batch."""
    if not isinstance(answer, dict) or not answer.get("batchItemFailures"):
        return None
    places = {record["dynamodb"]["SequenceNumber"]: place for place, record in reversed(list(enumerate(batch)))}
    return min(places.get((one or {}).get("itemIdentifier"), 0) for one in answer["batchItemFailures"])


def _written(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
