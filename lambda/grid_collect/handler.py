"""The actions of a grid's second function: collect the lines' results, report them, stop what still runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_lambda_powertools import Logger

from aws.batch import BatchJobs
from aws.grids import GridStore
from contract.environments import GridCollectEnvironment
from contract.errors import GridFailed, StillTraining
from contract.grid import ROUNDS, Grid, GridPrefix, arrays
from grid_collect.policy import gave_up
from grids import results
from grids.looking import GridLook
from grids.policy import short
from grids.reporting import report
from grids.stopping import Stopping, jobs_of

logger = Logger(service="grid_collect")


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Does the event's action, which may come twice, even at the same time. Raises GridFailed where there is no plan."""
    env = GridCollectEnvironment.read()
    store = GridStore(env.bucket)
    grid = _grid(store, str(event["grid"]))
    match event["action"]:
        case "collect":
            return _collect(env, store, grid, int(event["round"]), event.get("ended") or [])
        case "report":
            return report(env, store, grid, event["totals"], event.get("problem"))
        case "stop":
            return _stop(env, store, grid, event.get("problem"))
    raise ValueError(f"unknown action {event['action']!r}")


def _collect(
    env: GridCollectEnvironment, store: GridStore, grid: Grid, round_: int, submissions: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Reports that every line has its record, or returns the lines that need another round.

    Raises StillTraining while trainings run that no child watches, or while jobs run whose children may still create the absent
    ones; GridFailed after the last round.
    """
    found = GridLook(store, grid).read_state()
    logger.info("looked", grid=grid.id, round=round_, written=found.written, absent=len(found.absent))
    if found.running or found.unknown:
        raise StillTraining(
            f"these trainings and jobs of grid {grid.id} run, or may run: {short(found.running + found.unknown)}"
        )
    if not found.absent:
        return {"missing": 0, "arrays": [], "totals": results.write(store, grid).to_report()}
    if alive := jobs_of(grid, BatchJobs(env.queue)):
        raise StillTraining(f"these jobs of grid {grid.id} have not ended: {short([one.name for one in alive])}")
    if round_ >= ROUNDS:
        raise gave_up(found.absent, round_, submissions)
    work = store.work(grid.id, round_ + 1, found.absent)
    parts = [{"first": first, "size": size} for first, size in arrays(len(work))]
    return {"missing": len(found.absent), "arrays": parts, "totals": None}


def _stop(
    env: GridCollectEnvironment, store: GridStore, grid: Grid, problem: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Raises StillTraining while something runs, until the patience is over."""
    jobs = BatchJobs(env.queue)
    stopped = Stopping(store=store, jobs=jobs, patience_s=env.timing.grid_stop_patience_s).stop(grid, problem)
    return {"totals": stopped.totals.to_report(), "problem": stopped.problem, "left": len(stopped.left)}


def _grid(store: GridStore, name: str) -> Grid:
    grid = store.grid(name)
    if grid is None:
        raise GridFailed(
            f"there is no plan of grid {name}: s3://{store.name}/{GridPrefix(name).description} is not there"
        )
    return grid
