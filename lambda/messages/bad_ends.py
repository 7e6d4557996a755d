"""Finds what a message about a bad end is about: the execution's own document, unless the execution runs again or ended well."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol, TypeVar

from aws_lambda_powertools import Logger

from aws import executions
from aws.facts import Status
from messages.policy import read

logger = Logger(service="cleanup")
SAME_S = 60.0
"""Two starts of an execution so close to each other are one, however they are written."""


class Begun(Protocol):
    """What an execution's first step writes."""

    @property
    def execution(self) -> str: ...

    @property
    def started_at(self) -> str: ...


T = TypeVar("T", bound=Begun)


def find_ended(body: str, machine: str, find: Callable[[str], T | None]) -> tuple[T, Status] | None:
    """Returns the document of the execution that ended badly, and how; None where there is nothing to clean up. `machine` is the name of
    the state machine; `find` reads the document of an execution's name. Asks Step Functions first, whatever the event said: the execution
    may have been redriven."""
    notice = read(body, machine)
    if notice is None:
        logger.warning("dropped: the event is another machine's", body=body)
        return None
    status = executions.status(notice.execution)
    if status.runs or status.name == "SUCCEEDED":
        logger.info("nothing to clean up", execution=notice.execution, status=status.name)
        return None
    found = find(notice.execution.rpartition(":")[2])
    if found is None or not _is_of(found, notice.execution, status):
        logger.info("nothing was begun", execution=notice.execution, status=status.name)
        return None
    return found, status


def _is_of(begun: Begun, execution: str, status: Status) -> bool:
    """Whether this very execution began it: 90 days after its end another one may have its name, and so its ARN."""
    began = datetime.fromisoformat(begun.started_at).timestamp()
    return begun.execution == execution and (status.started_at is None or abs(began - status.started_at) < SAME_S)
