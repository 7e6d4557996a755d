"""CloudWatch Logs: refuses events of wrong clocks as AWS does, in an answer that succeeds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moto.logs.exceptions import InvalidParameterException, ResourceNotFoundException
from moto.logs.models import LogsBackend

from localaws.log_batches import judge_batch
from localaws.model import Refused

if TYPE_CHECKING:
    from localaws.server import LocalAws


def install(aws: LocalAws) -> None:
    """Replaces moto's PutLogEvents, whose indices of refused events are those of the wrong events, and which knows no retention."""
    aws.patch(LogsBackend, "put_log_events", _put)


def _put(
    backend: Any, log_group_name: str, log_stream_name: str, log_events: list[Mapping[str, Any]]
) -> tuple[str, dict[str, int]]:
    group = backend.groups.get(log_group_name)
    if group is None:
        raise ResourceNotFoundException
    try:
        taken, rejected = judge_batch(log_events, time.time(), group.retention_in_days)
    except Refused as problem:
        raise InvalidParameterException(problem.message) from None
    return group.put_log_events(log_stream_name, taken), rejected
