"""The starter: for each message that an object was uploaded, starts what its campaign says, and tells people what was refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import ClientError

from aws import executions, pinned
from aws.errors import S3_DENIED
from aws.queue import Queue
from aws.state import State
from aws.topic import publish
from contract.aws_errors import code_of
from contract.campaign_environments import StarterEnvironment
from contract.campaigns import STARTS_FILE, Campaign, Starts, read_starter
from contract.codec import decode
from contract.links import Console
from messages.checks import Check
from messages.work import work_through
from refusals.wording import plain, shut
from starter.policy import (
    MOST_CHECKS,
    Start,
    StartRefused,
    Uploaded,
    choose_start,
    find_campaigns,
    goes_on,
    is_watched,
    read_message,
    word_end,
)

logger = Logger(service="starter")
STARTS = Path(__file__).parents[1] / STARTS_FILE
NEVER_TAKEN = frozenset({"InvalidExecutionInput", "InvalidName", "ValidationException"})
"""Errors of StartExecution that say that no repeat will help."""


class NotYet(Exception):
    """Nothing can be started now; the message comes back."""


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Returns the messages to deliver again; after a day of tries they become letters."""
    env = StarterEnvironment.read()
    starts = decode(Starts, STARTS.read_bytes()).at(env.bucket)
    return work_through(
        event,
        Queue(env.messages),
        lambda body: _deal_with(body, starts, env),
        again_s=env.again_s,
        unfinished=NotYet,
    )


def _deal_with(body: str, starts: Starts, env: StarterEnvironment) -> None:
    message = read_message(body)
    if isinstance(message, Check):
        _check(message, starts, env)
        return
    campaigns = find_campaigns(message, starts)
    if not campaigns:
        logger.info("no campaign of the settings begins with it", bucket=message.bucket, key=message.key)
        return
    if (reason := State(env.table).admission_closed()) is not None:
        raise NotYet(shut(reason, env.table))
    refused = [problem for name, one in campaigns.items() if (problem := _start(name, one, message, env))]
    if refused:
        _tell(env, f"nothing started for {message.key.rpartition('/')[2]}", "\n\n".join(refused))
        Queue(env.letters).send(body, in_s=0)


def _start(name: str, campaign: Campaign, uploaded: Uploaded, env: StarterEnvironment) -> str:
    """Starts what the campaign says, unless it was started before. Returns why it never will be; empty where it is."""
    try:
        start = choose_start(name, campaign, uploaded, _head(name, uploaded))
        _begin(start, env)
    except StartRefused as refused:
        logger.warning("refused", campaign=name, reason=str(refused))
        return str(refused)
    return ""


def _head(name: str, uploaded: Uploaded) -> pinned.Pinned | None:
    try:
        return pinned.head(uploaded.bucket, uploaded.key)
    except ClientError as problem:
        if (code := code_of(problem)) not in S3_DENIED:
            raise
        where = f"s3://{uploaded.bucket}/{plain(uploaded.key, 1024)}"
        raise StartRefused(
            f"campaign {name}: {where} cannot be read (S3 answers {code}); allowed: an object that the deployment may read"
        ) from None


def _begin(start: Start, env: StarterEnvironment) -> None:
    """Starts the execution under its name, once. Its first question is sent before: a start without one would end untold."""
    machine = env.machines[start.what.value]
    execution = executions.name_arn(machine, start.name)
    if executions.described(execution) is not None:
        logger.info("started before", execution=execution)
        return
    Queue(env.messages).send(Check(execution=execution).write(), in_s=env.check_s)
    try:
        executions.start(machine, start.name, start.given)
    except ClientError as problem:
        if code_of(problem) not in NEVER_TAKEN:
            raise
        raise StartRefused(
            f"campaign {read_starter(start.name)}: Step Functions does not take its input ({plain(str(problem), 500)}); allowed: the "
            f"input of a {start.what.value} (campaigns in cdk.json)"
        ) from None
    logger.info("started", execution=execution)


def _check(check: Check, starts: Starts, env: StarterEnvironment) -> None:
    """Tells people where the execution was refused; asks again while it may still be."""
    if not is_watched(check.execution, starts):
        logger.info("neither a campaign nor a watch of the settings", execution=check.execution)
        return
    status = executions.status(check.execution)
    words = word_end(check.execution, status, starts)
    if words is not None:
        _, partition, _, region, *_ = check.execution.split(":")
        link = Console(partition, region).execution(check.execution)
        _tell(env, f"{check.execution.rpartition(':')[2]} was refused or failed", f"{words}\n\n{link}")
        Queue(env.letters).send(check.write(), in_s=0)
    elif goes_on(status) and check.number < MOST_CHECKS:
        Queue(env.messages).send(check.again().write(), in_s=env.check_s)


def _tell(env: StarterEnvironment, subject: str, text: str) -> None:
    publish(env.topic, f"Trainyard {env.deployment}: {subject}", text)
