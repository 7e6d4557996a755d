"""CloudWatch Logs: streams, and the rules for a batch of events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from localaws.model import Refused
from tests.fakes.clock import Clock
from tests.fakes.wire import Call

BATCH_BYTES = 1_048_576
EVENT_OVERHEAD = 26
BATCH_EVENTS = 10_000
BATCH_SPAN_MS = 24 * 3600 * 1000
TOO_OLD_S = 14 * 24 * 3600
TOO_NEW_S = 2 * 3600


@dataclass
class Logs:
    """Groups exist because a test put them here; streams because somebody created them."""

    clock: Clock
    groups: dict[str, dict[str, list[dict[str, Any]]]] = field(default_factory=dict)
    """Group to stream to events."""

    def answer(self, call: Call) -> dict[str, Any]:
        params = call.params
        group = self.groups.get(params["logGroupName"])
        if group is None:
            raise Refused("ResourceNotFoundException", "The specified log group does not exist.")
        match call.operation:
            case "CreateLogStream":
                return self._create(group, params["logStreamName"])
            case "PutLogEvents":
                return self._put(group, params)
            case "GetLogEvents":
                return self._get(group, params)
        raise Refused("InvalidOperationException", f"The fake has no {call.name}")

    @staticmethod
    def _create(group: dict[str, list[dict[str, Any]]], stream: str) -> dict[str, Any]:
        if stream in group:
            raise Refused("ResourceAlreadyExistsException", "The specified log stream already exists")
        group[stream] = []
        return {}

    @staticmethod
    def _get(group: dict[str, list[dict[str, Any]]], params: dict[str, Any]) -> dict[str, Any]:
        """The newest events first in line for the limit, in the order of time all the same."""
        stream = group.get(params["logStreamName"])
        if stream is None:
            raise Refused("ResourceNotFoundException", "The specified log stream does not exist.")
        assert params.get("startFromHead") is not True, "the fake reads from the end"
        return {"events": stream[-params.get("limit", BATCH_EVENTS) :]}

    def _put(self, group: dict[str, list[dict[str, Any]]], params: dict[str, Any]) -> dict[str, Any]:
        """A batch has at most 10,000 events and 1,048,576 bytes (26 more an event), in the order of time, within 24 hours.
        Events of more than 14 days ago or 2 hours ahead are dropped, and only the answer says so: the call succeeds."""
        stream = group.get(params["logStreamName"])
        if stream is None:
            raise Refused("ResourceNotFoundException", "The specified log stream does not exist.")
        events = params["logEvents"]
        times = [event["timestamp"] for event in events]
        size = sum(len(event["message"].encode()) + EVENT_OVERHEAD for event in events)
        if size > BATCH_BYTES or len(events) > BATCH_EVENTS:
            raise Refused("InvalidParameterException", f"Upload too large: {size} bytes exceeds limit of {BATCH_BYTES}")
        if times != sorted(times):
            raise Refused(
                "InvalidParameterException",
                "Log events in a single PutLogEvents request must be in chronological order.",
            )
        if times[-1] - times[0] > BATCH_SPAN_MS:
            raise Refused(
                "InvalidParameterException",
                "The batch of log events in a single PutLogEvents request cannot span more than 24 hours.",
            )
        oldest, newest = (self.clock.now - TOO_OLD_S) * 1000, (self.clock.now + TOO_NEW_S) * 1000
        stream += [event for event in events if oldest <= event["timestamp"] <= newest]
        old = sum(time < oldest for time in times)
        new = next((place for place, time in enumerate(times) if time > newest), None)
        rejected = {"tooOldLogEventEndIndex": old or None, "tooNewLogEventStartIndex": new}
        return {"rejectedLogEventsInfo": rejected} if old or new is not None else {}
