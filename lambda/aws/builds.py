"""Every CodeBuild call of the functions, and the last lines of a build's log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from aws.clients import client
from contract.aws_errors import code_of

if TYPE_CHECKING:
    from types_boto3_logs.client import CloudWatchLogsClient

LINES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What CodeBuild says of a build."""

    id: str
    status: str
    phase: str
    """Where it ended, as in `BUILD` or `PROVISIONING`."""
    log_group: str
    log_stream: str
    why: str
    """CodeBuild's own words on what failed: a build that never ran has no log."""


def build(identity: str) -> Build | None:
    """None where CodeBuild does not know it."""
    codebuild: Any = client("codebuild")
    found = codebuild.batch_get_builds(ids=[identity])["builds"]
    if not found:
        return None
    one = found[0]
    logs = one.get("logs", {})
    failed = [phase for phase in one.get("phases", []) if phase.get("phaseStatus") not in (None, "SUCCEEDED")]
    told = [context.get("message", "") for phase in failed for context in phase.get("contexts", [])]
    return Build(
        id=one["id"],
        status=one["buildStatus"],
        phase=failed[0]["phaseType"] if failed else one.get("currentPhase", ""),
        log_group=logs.get("groupName", ""),
        log_stream=logs.get("streamName", ""),
        why=" ".join(message for message in told if message),
    )


def last_lines(group: str, stream: str, count: int = LINES) -> list[str]:
    """The end of a log, oldest line first; nothing where there is no such log."""
    if not group or not stream:
        return []
    logs: CloudWatchLogsClient = client("logs")
    try:
        events = logs.get_log_events(logGroupName=group, logStreamName=stream, limit=count, startFromHead=False)[
            "events"
        ]
    except ClientError as problem:
        if code_of(problem) == "ResourceNotFoundException":
            return []
        raise
    return [line for event in events for line in event["message"].splitlines()][-count:]
