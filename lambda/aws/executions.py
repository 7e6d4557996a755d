"""Every Step Functions call about executions: lists those that run, asks how one ended, stops and starts one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from botocore.config import Config
from botocore.exceptions import ClientError

from aws.clients import PATIENT, client
from aws.facts import GONE, Status
from contract.aws_errors import code_of

if TYPE_CHECKING:
    from types_boto3_stepfunctions.client import SFNClient
    from types_boto3_stepfunctions.type_defs import ExecutionListItemTypeDef

CAUSE = 32_000
"""Step Functions takes 32,768 characters of cause."""
PAGE = 1000
"""The most that ListExecutions gives at once."""


def running(machine: str, config: Config = PATIENT) -> Iterator[str]:
    """ARNs of the machine's executions that run. The listing lags: one that began seconds ago may be missing.

    Raises ClientError or a botocore connection error part way; what came before it is not a whole answer.
    """
    return (one["executionArn"] for one in _listed(machine, "RUNNING", config))


@dataclass(frozen=True, slots=True)
class RunningExecution:
    """An execution as a listing shows it."""

    arn: str
    name: str
    started_at: float
    """UTC epoch seconds."""


def listed_running(machine: str, config: Config = PATIENT) -> Iterator[RunningExecution]:
    """As `running`, with name and start. Yields nothing where there is no such machine."""
    try:
        for one in _listed(machine, "RUNNING", config):
            yield RunningExecution(one["executionArn"], one["name"], one["startDate"].timestamp())
    except ClientError as problem:
        if code_of(problem) != "StateMachineDoesNotExist":
            raise


def exists(machine: str) -> bool:
    """Whether there is a state machine of this ARN. Raises ClientError or a botocore connection error where that is not known."""
    try:
        _client().list_executions(stateMachineArn=machine, maxResults=1)
    except ClientError as problem:
        if code_of(problem) == "StateMachineDoesNotExist":
            return False
        raise
    return True


def lately(machine: str, since: float) -> dict[str, str] | None:
    """ARN to status of the executions that run, or ended without success at or after `since` (UTC epoch seconds); None where
    there is no such machine. Lags as above.

    Reads the list of all executions (90 days of them): one that changes its status meanwhile is in it all the same.
    """
    try:
        return {one["executionArn"]: one["status"] for one in _listed(machine) if _late(one, since)}
    except ClientError as problem:
        if code_of(problem) == "StateMachineDoesNotExist":
            return None
        raise


def ended_since(machine: str, since: float) -> dict[str, float]:
    """ARN to end (UTC epoch seconds) of the executions that ended, however, at or after `since`; none where there is no such machine. Lags
    and reads the whole list, as `lately` does."""
    try:
        ends = {one["executionArn"]: one["stopDate"].timestamp() for one in _listed(machine) if "stopDate" in one}
    except ClientError as problem:
        if code_of(problem) == "StateMachineDoesNotExist":
            return {}
        raise
    return {arn: at for arn, at in ends.items() if at >= since}


@dataclass(frozen=True, slots=True)
class ListedExecution:
    """An execution as a listing shows it, of those that run or have just ended."""

    arn: str
    name: str
    ended_at: float | None
    """UTC epoch seconds; None for one that runs."""


def running_or_ended_since(machine: str, since: float, *, most: int) -> Iterator[ListedExecution]:
    """Yields every execution that runs, and of the `most` newest ones those that ended at or after `since` (UTC epoch seconds); nothing
    where there is no such machine. Lags as above."""
    try:
        for one in _listed(machine, "RUNNING"):
            yield ListedExecution(one["executionArn"], one["name"], None)
        for one in islice(_listed(machine), most):
            ended = one.get("stopDate")
            if ended is not None and ended.timestamp() >= since:
                yield ListedExecution(one["executionArn"], one["name"], ended.timestamp())
    except ClientError as problem:
        if code_of(problem) != "StateMachineDoesNotExist":
            raise


BAD_ENDS: tuple[Literal["ABORTED"], Literal["FAILED"], Literal["TIMED_OUT"]] = ("ABORTED", "FAILED", "TIMED_OUT")
"""Statuses of executions that ended without success."""


@dataclass(frozen=True, slots=True)
class BadEnd:
    """An execution that ended without success, as a listing shows it."""

    arn: str
    name: str
    ended_at: float
    """UTC epoch seconds."""


def ended_badly(
    machine: str, how: Literal["ABORTED", "FAILED", "TIMED_OUT"], since: float, until: float, *, most: int
) -> Iterator[BadEnd]:
    """Yields, of the `most` newest executions that ended with the status `how`, those that did from `since` to `until` (UTC epoch
    seconds); nothing where there is no such machine. Lags as above."""
    try:
        for one in islice(_listed(machine, how), most):
            ended = one.get("stopDate")
            if ended is not None and since <= ended.timestamp() <= until:
                yield BadEnd(one["executionArn"], one["name"], ended.timestamp())
    except ClientError as problem:
        if code_of(problem) != "StateMachineDoesNotExist":
            raise


def _late(one: ExecutionListItemTypeDef, since: float) -> bool:
    ended = one.get("stopDate")
    if one["status"] in Status.RUNS or ended is None:
        return True
    return one["status"] != "SUCCEEDED" and ended.timestamp() >= since


def status(arn: str, config: Config = PATIENT) -> Status:
    """The execution's status; GONE where Step Functions does not know it, or no longer (after 90 days).

    Raises ClientError or a botocore connection error where the status is not known: throttled, denied, a wrong ARN.
    """
    answer = described(arn, config)
    if answer is None:
        return Status(name=GONE)
    ended = answer.get("stopDate")
    return Status(
        name=answer["status"],
        started_at=answer["startDate"].timestamp(),
        ended_at=ended.timestamp() if ended else None,
        error=answer.get("error", ""),
        cause=answer.get("cause", ""),
    )


def described(arn: str, config: Config = PATIENT) -> Mapping[str, Any] | None:
    """DescribeExecution's whole answer; None where Step Functions does not know the execution. Raises as `status`."""
    try:
        answer: Mapping[str, Any] = _client(config).describe_execution(executionArn=arn)
    except ClientError as problem:
        if code_of(problem) == "ExecutionDoesNotExist":
            return None
        raise
    return answer


def stop(arn: str, error: str, cause: str) -> None:
    """Aborts the execution; one that is over, or gone, is left as it is."""
    try:
        _client().stop_execution(executionArn=arn, error=error, cause=cause[:CAUSE])
    except ClientError as problem:
        if code_of(problem) != "ExecutionDoesNotExist":
            raise


def name_arn(machine: str, name: str) -> str:
    """Returns the ARN of the machine's execution of that name, whether there is one or not."""
    return f"{machine.replace(':stateMachine:', ':execution:')}:{name}"


def start(machine: str, name: str, given: Mapping[str, Any]) -> None:
    """Starts an execution; one of that name, running or over, is left as it is."""
    try:
        _client().start_execution(stateMachineArn=machine, name=name, input=json.dumps(given))
    except ClientError as problem:
        if code_of(problem) != "ExecutionAlreadyExists":
            raise


def _listed(
    machine: str,
    wanted: Literal["RUNNING", "ABORTED", "FAILED", "TIMED_OUT"] | None = None,
    config: Config = PATIENT,
) -> Iterator[ExecutionListItemTypeDef]:
    arguments: Any = {"stateMachineArn": machine, "PaginationConfig": {"PageSize": PAGE}}
    if wanted:
        arguments["statusFilter"] = wanted
    for page in _client(config).get_paginator("list_executions").paginate(**arguments):
        yield from page["executions"]


def _client(config: Config = PATIENT) -> SFNClient:
    found: SFNClient = client("stepfunctions", config=config)
    return found
