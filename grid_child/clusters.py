"""Every Step Functions call of a child: starts, reads and stops the execution of the Train machine that is its line's training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from contract import keys
from contract.aws_errors import code_of
from contract.execution_facts import (
    ENDED_BY,
    ENDED_CAUSE,
    Evidence,
    address_execution,
    describe_execution,
    needs_evidence,
    read_report,
)
from contract.records import LineFacts
from grid_child.clients import client
from grid_child.plan import Work
from grid_child.policy import SubmitAnswer
from grid_child.store import Home
from grid_child.submission import submit
from grid_child.trouble import trouble_of


class ClusterLine:
    """One line as an execution of the Train machine."""

    service = "Step Functions"

    def __init__(self, work: Work, home: Home, now: Callable[[], float]) -> None:
        """`now`: UTC epoch seconds."""
        self._line, self._home, self._now = work.line, home, now
        self._arn = address_execution(work.line)

    @cached_property
    def _client(self) -> Any:
        return client("stepfunctions", self._line.region)

    def create(self) -> tuple[SubmitAnswer, str]:
        """As ChildBackend.create. Step Functions answers a repeat with the execution that runs under the name with the same input."""
        return submit(lambda: self._client.start_execution(**self._line.request), "executionArn")

    def find(self) -> LineFacts | None:
        answer = self._describe()
        if answer is None:
            return None
        evidence = self._read_evidence() if needs_evidence(answer) else None
        return describe_execution(self._line, answer, evidence, now=self._now())

    def name_stranger(self, facts: LineFacts) -> str:
        """An execution of another input is a stranger's: the input names the grid's execution and the line."""
        answer = self._describe()
        if answer is None or answer.get("input") == self._line.request["input"]:
            return ""
        return f"{facts.arn}, which was started with another input"

    def stop(self) -> None:
        try:
            self._client.stop_execution(executionArn=self._arn, error=ENDED_BY, cause=ENDED_CAUSE)
        except (ClientError, BotoCoreError) as problem:
            if not _is_absent(problem):
                raise trouble_of(problem, "states:StopExecution") from problem

    def _describe(self) -> Mapping[str, Any] | None:
        try:
            answer: Mapping[str, Any] = self._client.describe_execution(executionArn=self._arn)
        except (ClientError, BotoCoreError) as problem:
            if _is_absent(problem):
                return None
            raise trouble_of(problem, "states:DescribeExecution") from problem
        return answer

    def _read_evidence(self) -> Evidence:
        prefix = keys.JobPrefix(self._line.training)
        body = self._home.read(prefix.result)
        return Evidence(is_admitted=self._home.exists(prefix.description), report=read_report(body))


def _is_absent(problem: Exception) -> bool:
    return isinstance(problem, ClientError) and code_of(problem) == "ExecutionDoesNotExist"
