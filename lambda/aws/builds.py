"""Every CodeBuild call of the functions, the last lines of a build's log, and how a failed build ended, in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from aws.clients import client
from contract.aws_errors import code_of
from contract.errors import BuildFailed

if TYPE_CHECKING:
    from types_boto3_logs.client import CloudWatchLogsClient

LINES = 30
LINE = 500
"""The most characters of a log line that a cause repeats."""
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
"""Control sequences that colour a log and move a cursor."""
BUILD = re.compile(r'"Id"\s*:\s*"([^":]+:[0-9a-f-]{36})"')
"""The id of the build in the cause of a failed Build: JSON that Step Functions may have cut."""


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


def failure(problem: Mapping[str, Any]) -> BuildFailed:
    """Returns the failure with the last lines of the build's log, if a build ran; `problem` is the error of the state Build."""
    error, cause = str(problem.get("Error", "")), str(problem.get("Cause", ""))
    identity = BUILD.search(cause)
    found = build(identity[1]) if identity else None
    if found is None:
        return BuildFailed(f"The build did not start or could not be followed ({error}): {cause[:2000]}")
    head = f"Build {found.id} ended with {found.status} in its phase {found.phase}."
    where = f"Its log is the stream {found.log_stream} of {found.log_group}."
    lines = [CONTROL.sub("", line)[:LINE] for line in last_lines(found.log_group, found.log_stream)]
    told = ["The last lines:", *lines] if lines else ["It wrote no log."]
    return BuildFailed("\n".join([head, *([found.why] if found.why else []), where, *told]))
