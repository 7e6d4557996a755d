"""Every CloudWatch Logs call of the agent: lines go in at any speed, batches go out in order, none is lost on purpose."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable
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
    """Takes from the left of `waiting` as much as one call may carry."""
    batch: list[Event] = []
    total = 0
    while waiting and len(batch) < BATCH_EVENTS:
        total += size_of(waiting[0])
        if total > BATCH_BYTES or (batch and waiting[0]["timestamp"] - batch[0]["timestamp"] > LONGEST_BATCH_MS):
            break
        batch.append(waiting.popleft())
    return batch


class LogShipper:
    """One log stream; its client is made when it is first needed.

    `line` never blocks, a thread sends, `flush` says whether everything arrived.
    """

    def __init__(
        self, client: Callable[[], Any], group: str, stream: str, *, every_s: float, now: Callable[[], float]
    ) -> None:
        self._client, self._group, self._stream = client, group, stream
        self._every_s, self._now = every_s, now
        self._waiting: deque[Event] = deque()
        self._batch: list[Event] = []
        self._bytes = self._dropped = 0
        self._lost = False
        self._newest_ms = 0
        self._created = self._closed = False
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._hurry = threading.Event()
        self._thread = threading.Thread(target=self._run, name="logs", daemon=True)
        self._thread.start()

    def line(self, text: str) -> None:
        message = cut(without_metrics(text))
        with self._lock:
            # Events of a batch must be in order of time, and a clock may be set back.
            self._newest_ms = max(self._newest_ms, int(self._now() * 1000))
            event = {"timestamp": self._newest_ms, "message": message}
            self._waiting.append(event)
            self._bytes += size_of(event)
            while self._bytes > WAITING_BYTES:
                self._bytes -= size_of(self._waiting.popleft())
                self._drop(1)
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
            while True:
                with self._lock:
                    if not self._batch:
                        self._tell_dropped()
                        self._batch = next_batch(self._waiting)
                        self._bytes -= sum(size_of(event) for event in self._batch)
                if not self._batch:
                    return True
                try:
                    self._send(self._batch)
                except Exception as problem:  # a log that fails must never end a job
                    if not self._is_refused(problem):
                        return False
                    self._drop(len(self._batch))
                self._batch = []

    def _send(self, batch: list[Event]) -> None:
        if not self._created:
            self._create_stream()
        try:
            self._client().put_log_events(logGroupName=self._group, logStreamName=self._stream, logEvents=batch)
        except ClientError as problem:
            if code_of(problem) == "ResourceNotFoundException":
                self._created = False
            raise

    def _create_stream(self) -> None:
        try:
            self._client().create_log_stream(logGroupName=self._group, logStreamName=self._stream)
        except ClientError as problem:
            if code_of(problem) != "ResourceAlreadyExistsException":
                raise
        self._created = True

    def _drop(self, lines: int) -> None:
        self._dropped += lines
        self._lost = True

    @staticmethod
    def _is_refused(problem: Exception) -> bool:
        """Sending the same bytes again cannot help, and would hold up every line behind them."""
        return isinstance(problem, ClientError) and code_of(problem) == "InvalidParameterException"

    def _tell_dropped(self) -> None:
        if self._dropped and self._waiting:
            message = f"{OWN_LINE}{self._dropped} lines are missing here: CloudWatch Logs did not take them"
            self._waiting.appendleft({"timestamp": self._waiting[0]["timestamp"], "message": message})
            self._bytes += size_of(self._waiting[0])
            self._dropped = 0
