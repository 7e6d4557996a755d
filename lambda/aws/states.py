"""Every Step Functions call about task tokens; a dead token is an answer, not an error."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from aws.clients import client
from contract.aws_errors import code_of

if TYPE_CHECKING:
    from types_boto3_stepfunctions.client import SFNClient

DEAD = frozenset({"TaskTimedOut", "TaskDoesNotExist", "InvalidToken"})
CAUSE = 32_000
"""Bytes. Step Functions takes 32,768 characters of cause, and does not say how it counts a letter of four bytes, of which a job's output
may be full."""


def heartbeat(token: str) -> bool:
    """False when no execution waits for this token any more."""
    return _alive(lambda states: states.send_task_heartbeat(taskToken=token))


def success(token: str, output: dict[str, Any]) -> bool:
    """False when no execution waits for this token any more."""
    return _alive(lambda states: states.send_task_success(taskToken=token, output=json.dumps(output)))


def failure(token: str, error: str, cause: str) -> bool:
    """False when no execution waits for this token any more."""
    return _alive(lambda states: states.send_task_failure(taskToken=token, error=error, cause=_cut(cause)))


def _cut(cause: str) -> str:
    return cause.encode()[:CAUSE].decode(errors="ignore")


def _alive(send: Callable[[SFNClient], object]) -> bool:
    try:
        send(client("stepfunctions"))
    except ClientError as problem:
        if code_of(problem) in DEAD:
            return False
        raise
    return True
