"""The cleanup of grids: for each message that an execution has ended, ends the trainings that it left, and reports how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger

from aws.batch import BatchJobs
from aws.facts import Status
from aws.grids import GridStore
from aws.queue import Queue
from contract import names
from contract.environments import GridCleanupEnvironment
from contract.errors import StillTraining
from contract.grid import Grid
from ending.report import cause_of_end
from grids.policy import short
from grids.reporting import report, standing
from grids.stopping import Stopped, Stopping
from messages.bad_ends import find_ended
from messages.work import work_through

logger = Logger(service="cleanup")


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
    store = GridStore(env.bucket)
    if found := find_ended(body, names.grid_machine(env.deployment), store.grid):
        _end(env, store, *found)


def _end(env: GridCleanupEnvironment, store: GridStore, grid: Grid, status: Status) -> None:
    """Writes the report, unless the machine itself reported this end with as many lines: its report says more."""
    stopping = Stopping(store=store, jobs=BatchJobs(env.queue), patience_s=env.timing.grid_stop_patience_s)
    stopped = stopping.stop(grid, cause_of_end(status))
    if not _says_so(standing(store, grid.id), stopped):
        report(env, store, grid, stopped.totals.to_report(), stopped.problem)
    if stopped.left:
        raise StillTraining(f"these trainings and jobs of grid {grid.id} run, or may run: {short(stopped.left)}")
    logger.info("cleaned up", grid=grid.id, execution=grid.execution)


def _says_so(written: Mapping[str, Any] | None, stopped: Stopped) -> bool:
    """Whether a report tells of this end, and of as many lines."""
    problem = written.get("problem") if written else None
    error = problem.get("error") if isinstance(problem, dict) else None
    return (
        written is not None
        and error == stopped.problem["error"]
        and written.get("unfinished") == stopped.totals.unfinished
    )
