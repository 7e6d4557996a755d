"""The function that keeps the catalogue: a queue calls it for each end, and a clock every hour."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger

from aws.data_api import DataApi
from aws.queue import Queue
from contract.catalogue_environments import KeeperEnvironment
from keeper.asking import ask_market
from keeper.ends import NotReported
from keeper.passes import Keeper
from messages.policy import read
from messages.work import work_through

logger = Logger(service="keeper")
AGAIN_S = 300.0
"""Cleanups take minutes until they have proved that nothing runs, and then write the report."""
READ = "read"
"""The action by which a person has the tables read whose campaigns name new types."""


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any] | None:
    """Returns the messages to deliver again, where the queue called it."""
    env = KeeperEnvironment.read()
    keeper = Keeper(env, DataApi(env.access), lambda types: ask_market(env, types), time.time)
    if "Records" in event:
        return work_through(
            event,
            Queue(env.messages),
            lambda body: write_end(keeper, env, body),
            again_s=AGAIN_S,
            unfinished=NotReported,
        )
    if event.get("action") == READ:
        keeper.read_now()
    else:
        keeper.work()
    return None


def write_end(keeper: Keeper, env: KeeperEnvironment, body: str) -> None:
    """Writes what the execution left of which the event tells. Raises what keeps it from that."""
    for machine in (env.machine, env.grid_machine):
        if notice := read(body, machine.rpartition(":")[2]):
            logger.info("wrote an end", execution=notice.execution, rows=keeper.write_end(notice.execution))
            return
    logger.warning("dropped: the event is another machine's", body=body)
