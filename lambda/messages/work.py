"""Works through messages of a queue one by one; one that fails is delivered again, and at last becomes a dead letter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws.queue import Queue

logger = Logger(service="cleanup")


def work_through(
    event: Mapping[str, Any],
    queue: Queue,
    clean: Callable[[str], None],
    *,
    again_s: float,
    unfinished: type[Exception] | tuple[()] = (),
    at_once: int = 1,
) -> dict[str, Any]:
    """Gives each message's body to `clean`, `at_once` of them side by side. A message whose `clean` raises is delivered again in `again_s`;
    `unfinished` is the exception that only means "not yet", if there is one. Returns the messages to deliver again in the form that
    Lambda expects."""
    records, bodies = event["Records"], [record["body"] for record in event["Records"]]
    if at_once == 1:
        done = [_done(body, clean, unfinished) for body in bodies]
    else:
        with ThreadPoolExecutor(at_once) as pool:
            done = list(pool.map(lambda body: _done(body, clean, unfinished), bodies))
    failed = [record for record, is_done in zip(records, done, strict=True) if not is_done]
    for record in failed:
        _come_back(queue, record, again_s)
    return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in failed]}


def _done(body: str, clean: Callable[[str], None], unfinished: type[Exception] | tuple[()]) -> bool:
    """False, whatever the reason, for a message that has to come back."""
    try:
        clean(body)
    except unfinished as problem:
        logger.info("not over yet", reason=str(problem))
        return False
    except Exception:
        logger.exception("a message could not be dealt with", body=body)
        return False
    return True


def _come_back(queue: Queue, record: Mapping[str, Any], in_s: float) -> None:
    try:
        queue.again(record["receiptHandle"], in_s=in_s)
    except (ClientError, BotoCoreError):
        logger.exception("the message comes back only when the queue's own time-out is over")
