"""CloudWatch Logs: streams, and the rules for a batch of events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from localaws.log_batches import BATCH_EVENTS, judge_batch
from localaws.model import Refused
from tests.fakes.clock import Clock
from tests.fakes.wire import Call


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
        stream = group.get(params["logStreamName"])
        if stream is None:
            raise Refused("ResourceNotFoundException", "The specified log stream does not exist.")
        taken, rejected = judge_batch(params["logEvents"], self.clock.now)
        stream += [dict(event) for event in taken]
        return {"rejectedLogEventsInfo": rejected} if rejected else {}
