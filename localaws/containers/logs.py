"""What a container prints, on its way into a log stream in small batches, as a log driver ships it."""

from __future__ import annotations

import threading
import time
from typing import Any

from botocore.exceptions import ClientError

MOST = 200
"""Lines of a batch."""
OLDEST_S = 0.5
"""A line waits no longer than until the next one after so many seconds, or the end."""


class LogStream:
    """Made at once; `say` may be called by several threads."""

    def __init__(self, logs: Any, group: str, stream: str, *, new_group: bool = False) -> None:
        """`new_group`: whoever writes makes the group, too, where it is not there."""
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
            if line:  # CloudWatch takes no empty event
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
