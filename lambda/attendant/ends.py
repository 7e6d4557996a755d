"""Tells people that a job's execution is over: of each admitted job whose end they are to be told, until they have been.

Step Functions alone says that an execution is over and how; no event wakes this, so none can be lost. Nothing waits for it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from attendant import notices
from attendant.telling import Message, tell_once
from aws import executions
from aws.clients import IN_PASSING
from aws.facts import Status
from aws.state import OwedEnd, State
from contract import items
from contract.codec import Garbled
from contract.jobs import Job

logger = Logger(service="attendant")
LEAST_S = 20.0
"""With less of the invocation's time left nothing more is begun; the next minute goes on."""
FAILURES = 3
"""After so many failures in a row nothing more is begun: each may cost seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """What an invocation needs that tells of ends."""

    state: State
    topic: str
    deployment: str
    left: Callable[[], float]
    """What remains of the invocation's time, in seconds."""

    def tell(self) -> int:
        """Returns of how many ends people have been told, or do not have to be. Others are left to the next minute."""
        owed, done, failures = self._over(), 0, 0
        random.shuffle(owed)  # one that takes long, or fails each time, must not come first for ever
        for one in owed:
            if self.left() < LEAST_S or failures >= FAILURES:
                logger.warning("not all ends were told; the next minute goes on", left=len(owed) - done)
                break
            if self._settled(one):
                done, failures = done + 1, 0
            else:
                failures += 1
        return done

    def _over(self) -> list[OwedEnd]:
        """The jobs that are not listed among those that run. The list lags, so each of them is asked for before anybody is told."""
        owed = self.state.untold()
        machines = {_machine(one.execution) for one in owed}
        running = {execution for machine in machines for execution in executions.running(machine, IN_PASSING)}
        return [one for one in owed if one.execution not in running]

    def _settled(self, one: OwedEnd) -> bool:
        """Whether nobody has to look at it before the next minute."""
        try:
            status = executions.status(one.execution, IN_PASSING)
            if status.runs:
                return True
            if notices.event_of(status) in one.events and not self._told(one, status):
                return False
            self.state.settle_end(one.job)
        except (ClientError, BotoCoreError):
            logger.exception("whether the job is over is not known; the next minute asks again", job=one.job)
            return False
        return True

    def _told(self, one: OwedEnd, status: Status) -> bool:
        now = time.time()
        return tell_once(
            self.state, self.topic, items.end_notice(one.job), lambda: self._worded(one, status, now), now=now
        )

    def _worded(self, one: OwedEnd, status: Status, now: float) -> Message:
        job = self._job(one)
        walks = self.state.walks(one.job) if job else []
        cost = notices.cost_so_far(job, walks, self.state.ends(one.job), now=now) if job else notices.UNKNOWN_COST
        attempts = max((walk.attempt for walk in walks), default=0)
        return notices.ended(one, status, self.deployment, job, attempts, cost)

    def _job(self, one: OwedEnd) -> Job | None:
        """None where its admission did not come to its end, or somebody changed the document."""
        try:
            return self.state.job(one.job)
        except Garbled:
            return None


def _machine(execution: str) -> str:
    return execution.rpartition(":")[0].replace(":execution:", ":stateMachine:")
