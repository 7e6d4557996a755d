"""The cleanup's function: for each message of an execution's end, ends what it left, and looks once more a while later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws.queue import Queue
from aws.s3 import JobStore
from cleanup.policy import read
from contract.environments import CleanupEnvironment
from contract.errors import StillRunning
from terminator.aftermath import Found, clear
from terminator.ending import Ending

logger = Logger(service="cleanup")


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """What is not done comes back in `terminate_again_s`, and at last goes to the dead-letter queue; the answer names it."""
    env = CleanupEnvironment.read()
    queue = Queue(env.queue)
    failed = [record for record in event["Records"] if not _done(record["body"], env, queue)]
    for record in failed:
        _come_back(queue, record, env.timing.terminate_again_s)
    return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in failed]}


def _done(body: str, env: CleanupEnvironment, queue: Queue) -> bool:
    """False, whatever the reason, for a message that has to come back."""
    try:
        _clean(body, env, queue)
    except StillRunning as problem:
        logger.info("not over yet", reason=str(problem))
        return False
    except Exception:
        logger.exception("a message could not be dealt with", body=body)
        return False
    return True


def _clean(body: str, env: CleanupEnvironment, queue: Queue) -> None:
    notice = read(body, env.deployment)
    if notice is None:
        logger.warning("dropped: the event is another machine's", body=body)
        return
    ending = Ending(
        store=JobStore(env.bucket),
        deployment=env.deployment,
        regions=env.regions,
        visibility_s=env.timing.visibility_s,
    )
    found = clear(ending, notice.execution)
    logger.info("cleaned up", execution=notice.execution, found=found, second=notice.second)
    if found is Found.CLEARED and not notice.second:
        queue.send(notice.again(), in_s=env.timing.cleanup_again_s)


def _come_back(queue: Queue, record: Mapping[str, Any], in_s: float) -> None:
    try:
        queue.again(record["receiptHandle"], in_s=in_s)
    except (ClientError, BotoCoreError):
        logger.exception("the message comes back only when the queue's own time-out is over")
