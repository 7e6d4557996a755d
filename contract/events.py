"""What people can be told of a job: the words of a request's `notify`, which a subscription can be filtered by."""

from __future__ import annotations

from enum import Enum


class Event(str, Enum):
    """What happened to a job."""

    DONE = "done"
    """Its execution succeeded."""
    FAILED = "failed"
    """Its execution ended otherwise: by an error, by a person who stopped it, or by its own time-out."""
    RECOVERED = "recovered"
    """A new attempt trains: every node has begun."""
    STALLED = "stalled"
    """Its training makes no progress, by `stall` of the request."""

    @classmethod
    def of_later_version(cls) -> Event:
        """A person hears of it rather than not."""
        return cls.FAILED


ENDS = frozenset({Event.DONE, Event.FAILED})
"""Those of an execution that is over."""
EVENT, JOB, OWNER = "event", "job", "owner"
"""Attributes of a message, by which a subscription can be filtered."""
