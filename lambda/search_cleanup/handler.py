"""The cleanup of searches: for each message that an execution has ended, stops the grid of its open round, and reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger

from aws import executions
from aws.facts import Status
from aws.queue import Queue
from contract import names
from contract.environments import GridCleanupEnvironment
from contract.errors import StillTraining
from contract.execution_facts import ENDED_BY
from contract.search import Search, name_round, read_search_of
from ending.report import cause_of_end
from messages.bad_ends import find_ended
from messages.work import work_through
from searches.earlier import address_grid, is_settled
from searches.reporting import report
from searches.store import SearchStore

logger = Logger(service="cleanup")
CAUSE = "The search of this round is over."


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Returns the messages to deliver again: they come back in `grid_collect_again_s`, and at last go to the dead-letter queue."""
    env = GridCleanupEnvironment.read()
    return work_through(
        event,
        Queue(env.messages),
        lambda body: _clean(body, env),
        again_s=env.timing.grid_collect_again_s,
        unfinished=StillTraining,
    )


def _clean(body: str, env: GridCleanupEnvironment) -> None:
    store = SearchStore(env.bucket)
    if found := find_ended(body, names.search_machine(env.deployment), store.search):
        _end(env, store, *found)


def _end(env: GridCleanupEnvironment, store: SearchStore, search: Search, status: Status) -> None:
    """Stops the last round's grid, whose own cleanup ends its trainings, and waits until they are counted."""
    round_ = store.count_rounds(search.id)
    if round_:
        arn = address_grid(env, search.id, round_)
        found = executions.described(arn)
        if found is not None and read_search_of(name_round(search.id, round_), found.get("input")) == search.execution:
            if found["status"] in Status.RUNS:
                logger.info("stopped a grid", execution=arn)
                executions.stop(arn, ENDED_BY, CAUSE)
                raise StillTraining(f"the grid {arn} was running a moment ago")
            if found["status"] != "SUCCEEDED" and not is_settled(store, name_round(search.id, round_)):
                raise StillTraining(f"the trainings of the grid {arn} are being ended")
    problem = cause_of_end(status)
    report(env, store, search, problem["cause"], problem)
    logger.info("cleaned up", search=search.id, execution=search.execution)
