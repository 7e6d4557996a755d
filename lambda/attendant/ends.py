"""Announces that a job's execution is over: each admitted job whose end people have to be told, until they have been.

Step Functions alone says that an execution is over and how; no event wakes this, so none can be lost. Nothing waits for it.
"""

from __future__ import annotations

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from attendant import notices
from attendant.invocation import Invocation
from attendant.notices import Message
from attendant.telling import tell_once
from aws import executions
from aws.clients import IN_PASSING
from aws.facts import Status
from aws.state import OwedEnd, State
from contract import items
from contract.codec import Garbled
from contract.intents import ran_in
from contract.jobs import Job

logger = Logger(service="attendant")
LEAST_S = 20.0
"""With less of the invocation's time left nothing more is begun; the next minute goes on."""
FAILURES = 3
"""After so many failures in a row nothing more is begun: each may cost seconds."""


def announce_ends(invocation: Invocation) -> int:
    """Returns how many ends are settled: people have been told, or do not have to be. The next minute goes on with the others.

    Raises what the table or Step Functions answer where nothing is known: Lambda then calls it again, which does no harm."""
    owed, settled, failures = _find_ended(invocation.state), 0, 0
    invocation.chance.shuffle(owed)  # one that takes long, or fails each time, must not come first for ever
    for one in owed:
        if invocation.remaining_s() < LEAST_S or failures >= FAILURES:
            logger.warning("not all ends were announced; the next minute goes on", left=len(owed) - settled)
            break
        if _settle(invocation, one):
            settled, failures = settled + 1, 0
        else:
            failures += 1
    return settled


def _find_ended(state: State) -> list[OwedEnd]:
    """Returns the jobs that are not listed among those that run. The list lags, so `_settle` asks for each of them."""
    owed = state.untold()
    machines = {_machine(one.execution) for one in owed}
    running = {execution for machine in machines for execution in executions.running(machine, IN_PASSING)}
    return [one for one in owed if one.execution not in running]


def _settle(invocation: Invocation, one: OwedEnd) -> bool:
    """Returns whether the end needs nothing more before the next minute."""
    try:
        status = executions.status(one.execution, IN_PASSING)
        if status.runs:
            return True
        if notices.event_of(status) in one.events and not _announce(invocation, one, status):
            return False
        invocation.state.settle_end(one.job)
    except (ClientError, BotoCoreError):
        logger.exception("could not learn whether the job is over; the next minute asks again", job=one.job)
        return False
    return True


def _announce(invocation: Invocation, one: OwedEnd, status: Status) -> bool:
    state, now = invocation.state, invocation.clock()
    key = items.end_notice(one.job)
    return tell_once(state, invocation.env.topic, key, lambda: _word_end(invocation, one, status, now), now=now)


def _word_end(invocation: Invocation, one: OwedEnd, status: Status, now: float) -> Message:
    state, job = invocation.state, _read_job(invocation.state, one)
    walks = state.walks(one.job) if job else []
    cost = notices.cost_so_far(job, walks, state.ends(one.job), now=now) if job else notices.UNKNOWN_COST
    attempts = max((walk.attempt for walk in walks), default=0)
    deployment, regions = invocation.env.deployment, ran_in(walks)
    return notices.word_end(one, status, deployment, job, attempts, cost, regions=regions)


def _read_job(state: State, one: OwedEnd) -> Job | None:
    """Returns None where the job's admission did not complete, and where its document has been changed."""
    try:
        return state.job(one.job)
    except Garbled:
        return None


def _machine(execution: str) -> str:
    return execution.rpartition(":")[0].replace(":execution:", ":stateMachine:")
