"""Sends a container's output to a log stream in small batches, as a log driver does."""

from __future__ import annotations

import threading
import time
from typing import Any

from botocore.exceptions import ClientError

MOST = 200
"""The most lines of a batch."""
OLDEST_S = 0.5
"""Seconds after which the next line, or the end, sends the lines that wait."""


class LogStream:
    """Creates the stream at once; several threads may call `say`."""

    def __init__(self, logs: Any, group: str, stream: str, *, new_group: bool = False) -> None:
        """`new_group`: the writer also creates the group if it does not exist."""
        self._logs, self._where = logs, {"logGroupName": group, "logStreamName": stream}
        self._lines: list[dict[str, Any]] = []
        self._turn = threading.Lock()
        self._shipped_at = time.monotonic()
        if new_group:
            try:
                logs.create_log_group(logGroupName=group)
            except (
                ClientError
            ) as problem:  # `logs.exceptions` may be another object for each of two threads that ask first
                if problem.response["Error"]["Code"] != "ResourceAlreadyExistsException":
                    raise
        logs.create_log_stream(**self._where)

    def say(self, line: str) -> None:
        with self._turn:
            if line:  # CloudWatch rejects empty events
                self._lines.append({"timestamp": int(time.time() * 1000), "message": line})
            due = len(self._lines) >= MOST or time.monotonic() - self._shipped_at > OLDEST_S
        if due:
            self.flush()

    def flush(self) -> None:
        with self._turn:
            lines, self._lines = self._lines, []
            self._shipped_at = time.monotonic()
            if lines:
                self._logs.put_log_events(**self._where, logEvents=lines)
