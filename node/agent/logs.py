"""Every CloudWatch Logs call of the agent: lines go in at any speed, batches go out in order, none is lost on purpose."""

from __future__ import annotations

import math
import re
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from agent.store import MIB
from contract.aws_errors import code_of

BATCH_BYTES, BATCH_EVENTS, EVENT_OVERHEAD = 1_048_576, 10_000, 26
"""The limits of PutLogEvents, and what each event adds to its bytes."""
LONGEST_BATCH_MS = 23 * 3600 * 1000
"""PutLogEvents refuses a batch that spans more than a day."""
LINE_BYTES = 200 * 1024
"""Longer lines are cut: an event may have 256 KiB."""
WAITING_BYTES = 64 * MIB
"""What the agent keeps in memory while CloudWatch cannot be reached; beyond it the oldest lines go."""
SET_BACK_MS = 60_000
"""Lines keep their order while a clock is set back by at most this much. A clock that is set back by more was wrong before."""
TOO_NEW, TOO_OLD = "dated more than 2 hours ahead of AWS's clock", "dated more than 14 days ago"
EXPIRED = "dated before what the log group keeps"
INVALID, NO_ROOM = "that CloudWatch Logs rejected", "that found no room in memory while CloudWatch Logs did not answer"
OWN_LINE = "[trainyard] "
EMBEDDED = re.compile(r"(_|\\u005f)(a|\\u0061)(w|\\u0077)(s|\\u0073)", re.IGNORECASE)
"""The key that makes a JSON document embedded metrics, as JSON may spell it."""
NO_METRICS = "[no metrics] "

Event = dict[str, Any]


def size_of(event: Event) -> int:
    return len(event["message"].encode()) + EVENT_OVERHEAD


def without_metrics(line: str) -> str:
    """The line, marked if CloudWatch would take it for embedded metrics: what a job prints would cost money for each metric, or count
    as the control plane's. A line that only mentions the key is marked too."""
    is_document = line.lstrip(" \t\r\n\f\v\ufeff\0").startswith("{")
    return NO_METRICS + line if is_document and EMBEDDED.search(line) else line


def cut(line: str) -> str:
    """A line that fits into an event; an empty one becomes a space, because events may not be empty."""
    raw = line.encode("utf-8", "replace")
    if len(raw) > LINE_BYTES:
        return raw[:LINE_BYTES].decode("utf-8", "ignore") + f" ... [{len(raw) - LINE_BYTES} bytes cut]"
    return raw.decode() or " "


def next_batch(waiting: deque[Event]) -> list[Event]:
    """Takes from the left of `waiting` as much as one call may carry, and sorts it by time, as a call has to be."""
    batch: list[Event] = []
    total, first, last = 0, math.inf, -math.inf
    while waiting and len(batch) < BATCH_EVENTS:
        total += size_of(waiting[0])
        first, last = min(first, waiting[0]["timestamp"]), max(last, waiting[0]["timestamp"])
        if total > BATCH_BYTES or last - first > LONGEST_BATCH_MS:
            break
        batch.append(waiting.popleft())
    return sorted(batch, key=lambda event: int(event["timestamp"]))


def count_rejected(info: Mapping[str, int], events: int) -> Counter[str]:
    """How many of a batch's events a successful answer rejects, by reason. `info` is its `rejectedLogEventsInfo`; the other events have
    arrived."""
    too_old = info.get("tooOldLogEventEndIndex", 0)
    expired = info.get("expiredLogEventEndIndex", 0) - too_old
    too_new = events - info.get("tooNewLogEventStartIndex", events)
    return +Counter({TOO_OLD: too_old, EXPIRED: expired, TOO_NEW: too_new})


class LogShipper:
    """One log stream; its client is made when it is first needed. `now` should be AWS's time: CloudWatch Logs rejects wrong times.

    `line` never blocks, a thread sends, `flush` says whether everything arrived. A line of the stream says how many are missing, and why.
    """

    def __init__(
        self, client: Callable[[], Any], group: str, stream: str, *, every_s: float, now: Callable[[], float]
    ) -> None:
        self._client, self._group, self._stream = client, group, stream
        self._every_s, self._now = every_s, now
        self._waiting: deque[Event] = deque()
        self._batch: list[Event] = []
        self._bytes = self._newest_ms = 0
        self._missing = Counter[str]()
        """Lines that did not arrive, by reason, of which the stream does not know yet."""
        self._lost = False
        self._created = self._closed = False
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._hurry = threading.Event()
        self._thread = threading.Thread(target=self._run, name="logs", daemon=True)
        self._thread.start()

    def line(self, text: str) -> None:
        message = cut(without_metrics(text))
        with self._lock:
            event = {"timestamp": self._moment(), "message": message}
            self._waiting.append(event)
            self._bytes += size_of(event)
            while self._bytes > WAITING_BYTES:
                self._bytes -= size_of(self._waiting.popleft())
                self._miss(Counter({NO_ROOM: 1}))
            if self._bytes > BATCH_BYTES or len(self._waiting) >= BATCH_EVENTS:
                self._hurry.set()

    def flush(self, timeout_s: float) -> bool:
        """Sends what is there; True when every line that came before has arrived within `timeout_s` seconds."""
        done = threading.Event()

        def send() -> None:
            while not self._send_all():
                if done.wait(min(1.0, self._every_s)):
                    return
            done.set()

        threading.Thread(target=send, name="flush", daemon=True).start()
        arrived = done.wait(timeout_s)
        done.set()
        return arrived and not self._lost

    def close(self) -> None:
        """Ends the thread; call `flush` before."""
        self._closed = True
        self._hurry.set()

    def _run(self) -> None:
        while not self._closed:
            self._hurry.wait(self._every_s)
            self._hurry.clear()
            self._send_all()

    def _send_all(self) -> bool:
        """False when something is left because a call failed; it stays at the head of the line."""
        with self._sending:
            try:
                while True:
                    self._tell_missing()
                    with self._lock:
                        if not self._batch:
                            self._batch = next_batch(self._waiting)
                            self._bytes -= sum(size_of(event) for event in self._batch)
                    if not self._batch:
                        return True
                    rejected = self._send(self._batch)
                    self._batch = []
                    with self._lock:
                        self._miss(rejected)
            except Exception:  # a log that fails must never end a job
                return False

    def _send(self, batch: list[Event]) -> Counter[str]:
        """Returns how many events were rejected, by reason. Sending the same bytes again cannot help these, and would hold up every line
        behind them."""
        try:
            if not self._created:
                self._create_stream()
            answer = self._client().put_log_events(
                logGroupName=self._group, logStreamName=self._stream, logEvents=batch
            )
        except ClientError as problem:
            if code_of(problem) == "InvalidParameterException":
                return Counter({INVALID: len(batch)})
            if code_of(problem) == "ResourceNotFoundException":
                self._created = False
            raise
        return count_rejected(answer.get("rejectedLogEventsInfo", {}), len(batch))

    def _create_stream(self) -> None:
        try:
            self._client().create_log_stream(logGroupName=self._group, logStreamName=self._stream)
        except ClientError as problem:
            if code_of(problem) != "ResourceAlreadyExistsException":
                raise
        self._created = True

    def _moment(self) -> int:
        """When a line came, in milliseconds. Needs the lock."""
        now = int(self._now() * 1000)
        if not now < self._newest_ms <= now + SET_BACK_MS:
            self._newest_ms = now
        return self._newest_ms

    def _miss(self, lines: Counter[str]) -> None:
        """Needs the lock."""
        self._missing += lines
        self._lost = bool(lines) or self._lost

    def _tell_missing(self) -> None:
        """Says in the stream what is missing. Where this is rejected too, the next call says it."""
        with self._lock:
            if not self._missing:
                return
            missing = self._missing.copy()
            at = self._waiting[0]["timestamp"] if self._waiting else self._moment()
        words = ", ".join(f"{count} {why}" for why, count in missing.items())
        if not self._send([{"timestamp": at, "message": f"{OWN_LINE}lines are missing here: {words}"}]):
            with self._lock:
                self._missing -= missing
