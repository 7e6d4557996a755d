"""Times for people."""

from __future__ import annotations

from datetime import UTC, datetime


def utc(moment: float) -> str:
    """A time in UTC, to the second; `moment` is in UTC epoch seconds."""
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M:%S} UTC"
