"""The cleanup's function: for each message that an execution has ended, ends what it left behind, and looks once more later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger

from aws.queue import Queue
from aws.s3 import HomeBucket
from aws.state import State
from contract import names
from contract.environments import CleanupEnvironment
from contract.errors import StillRunning
from ending.aftermath import Aftermath, clean_up
from ending.instances import Ending
from messages.policy import read
from messages.work import work_through

logger = Logger(service="cleanup")


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Returns the messages to deliver again: they come back in `terminate_again_s`, and at last go to the dead-letter queue."""
    env = CleanupEnvironment.read()
    queue = Queue(env.queue)
    return work_through(
        event,
        queue,
        lambda body: _clean(body, env, queue),
        again_s=env.timing.terminate_again_s,
        unfinished=StillRunning,
    )


def _clean(body: str, env: CleanupEnvironment, queue: Queue) -> None:
    notice = read(body, names.machine(env.deployment))
    if notice is None:
        logger.warning("dropped an event of another state machine", body=body)
        return
    ending = Ending(
        state=State(env.table),
        home=HomeBucket(env.bucket),
        deployment=env.deployment,
        profile=env.instance_profile,
        regions=env.regions,
        visibility_s=env.timing.visibility_s,
    )
    found = clean_up(ending, notice.execution)
    logger.info("cleaned up", execution=notice.execution, found=found, second=notice.second)
    if found is Aftermath.CLEARED and not notice.second:
        queue.send(notice.again(), in_s=env.timing.cleanup_again_s)
