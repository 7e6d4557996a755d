"""Finds out whether the executions that things name still run: from one list, then by one question for each that is not in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws import executions
from aws.clients import BRISK
from aws.facts import GONE
from contract import names
from reaper.policy import Life, OwningExecution

logger = Logger(service="reaper")
MOST = 500
"""Executions that a pass asks for; Step Functions answers 300 at once, then 15 a second in a small region."""
FAILURES = 3
"""After this many failures in a row a pass asks no more: each may cost seconds."""
OVER = frozenset({"SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"})
RUNS = OwningExecution(life=Life.RUNS)
UNASKED = OwningExecution(life=Life.UNKNOWN, why="Step Functions was not asked yet")


class Owners:
    """What a pass knows of the executions of the deployment's machines. After a failed question the answer is "unknown"."""

    def __init__(self, machines: Sequence[str], *, clock: Callable[[], float], has_time: Callable[[], bool]) -> None:
        self._clock, self._has_time = clock, has_time
        ours = (re.escape(machine.replace(":stateMachine:", ":execution:")) for machine in machines)
        self._ours = re.compile(f"({'|'.join(ours)}):{names.JOB_PATTERN.pattern}")
        self._running = self._list_running(machines)
        self._asked: dict[str, tuple[OwningExecution, float]] = {}
        self._failures = 0

    @staticmethod
    def _list_running(machines: Sequence[str]) -> frozenset[str]:
        """Returns the executions that run. A list that fails counts as empty: each execution is asked for then. Where Step Functions does
        not answer, the other lists would only cost their time-outs."""
        found = set[str]()
        for machine in machines:
            try:
                found |= set(executions.running(machine, BRISK))
            except (ClientError, BotoCoreError) as problem:
                logger.warning("could not list what runs", problem=str(problem))
                if isinstance(problem, BotoCoreError):
                    break
        return frozenset(found)

    def known(self, execution: str) -> OwningExecution:
        """Returns what is known without a call."""
        if execution in self._running:
            return RUNS
        return self._asked[execution][0] if execution in self._asked else UNASKED

    def ask(self, execution: str, *, fresh_s: float | None = None) -> OwningExecution:
        """Returns Step Functions' answer; one from earlier in this pass is used again, unless it is older than `fresh_s`."""
        if not self._ours.fullmatch(execution):
            return OwningExecution(
                life=Life.UNKNOWN,
                why=f"{execution!r} is not an execution of ours" if execution else "no tag names an execution",
            )
        if execution in self._asked:
            answer, at = self._asked[execution]
            if fresh_s is None or self._clock() - at <= fresh_s:
                return answer
        elif len(self._asked) >= MOST:
            return OwningExecution(life=Life.UNKNOWN, why=f"this pass has asked for {MOST} executions already")
        answer = self._question(execution)
        self._asked[execution] = (answer, self._clock())
        return answer

    def _question(self, execution: str) -> OwningExecution:
        if self._failures >= FAILURES or not self._has_time():
            return OwningExecution(
                life=Life.UNKNOWN, why="Step Functions did not answer in this pass, or the pass had no time left"
            )
        try:
            status = executions.status(execution, BRISK)
        except (ClientError, BotoCoreError) as problem:
            self._failures += 1
            return OwningExecution(life=Life.UNKNOWN, why=str(problem))
        self._failures = 0
        if status.runs:
            return RUNS
        if status.name == GONE:
            return OwningExecution(life=Life.OVER, why="Step Functions no longer has it")
        if status.ended_at is None or status.name not in OVER:
            return OwningExecution(life=Life.UNKNOWN, why=f"its status is {status.name}")
        return OwningExecution(life=Life.OVER, ended_at=status.ended_at, why=status.name)
