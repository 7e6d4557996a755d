"""The cleanup's function: for each message that an execution has ended, ends what it left behind, and looks once more later. Its clock
sends a message for each end without a report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from aws.clients import BRISK
from aws.queue import Queue
from aws.s3 import HomeBucket
from aws.state import State
from cleanup.clock import EndClock
from contract import names
from contract.environments import CleanupEnvironment
from contract.errors import StillRunning
from ending.aftermath import Aftermath, clean_up
from ending.instances import Ending
from messages.policy import read
from messages.work import work_through

logger = Logger(service="cleanup")


def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Returns the messages to deliver again: they come back in `terminate_again_s`, and at last go to the dead-letter queue. Where the
    clock called it, returns what the tick found."""
    env = CleanupEnvironment.read()
    queue = Queue(env.queue)
    if "Records" not in event:
        return EndClock(
            env=env,
            queue=queue,
            home=HomeBucket(env.bucket, config=BRISK),
            state=State(env.table, BRISK),
            now=time.time(),
            left=lambda: context.get_remaining_time_in_millis() / 1000,
        ).run()
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
