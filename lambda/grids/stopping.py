"""Ends a grid: forbids children to create trainings, terminates jobs and stops trainings, until nothing runs or can appear.

The state Stop and the cleanup after an execution's end use this code; the drain has its own, which ends every grid's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws.batch import BatchJob, BatchJobs
from aws.grids import GridStore
from contract import tags
from contract.errors import StillTraining
from contract.grid import Grid
from grids import results
from grids.looking import GridLook
from grids.policy import Totals, left_running, short, why

logger = Logger(service="grid_collect")
REASON = "The grid ended."
"""What Batch shows of jobs that were terminated with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The result of stopping a grid."""

    totals: Totals
    problem: dict[str, str]
    """Error and cause, which names what had not ended when the patience was over, and what a person protects."""
    left: list[str]
    """What had not ended. Empty means that only protected trainings run, and that no others can appear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """Ends grids of one deployment."""

    store: GridStore
    jobs: BatchJobs
    patience_s: float

    def stop(self, grid: Grid, problem: Mapping[str, Any] | None) -> Stopped:
        """Raises StillTraining while something runs, or may, and the patience since the first call is not over; ClientError or
        BotoCoreError where the home bucket does not answer."""
        since = self.store.stop(grid.id, why(problem), time.time())
        jobs = self._terminate(grid)
        # With no job left there is no child, and none will come: whatever has no training by now never gets one.
        found = GridLook(self.store, grid, end=True, fenced="" if jobs else why(problem)).read_state()
        left = jobs + found.running + found.unknown
        now = time.time()
        logger.info("stopped", grid=grid.id, left=len(left), written=found.written)
        if left and now < since + self.patience_s:
            raise StillTraining(f"grid {grid.id} has not ended yet: {short(left)}")
        totals = results.write(self.store, grid)
        return Stopped(totals=totals, problem=left_running(problem, left, now - since, found.kept), left=left)

    def _terminate(self, grid: Grid) -> list[str]:
        """Terminates the grid's jobs. Returns those that were not over a moment ago; a Batch that does not answer counts as one, and
        trainings are stopped all the same."""
        try:
            alive = jobs_of(grid, self.jobs)
        except (ClientError, BotoCoreError) as problem:
            return [f"jobs that Batch did not list ({problem})"]
        return [f"job {job.name} ({job.status}{self._terminate_job(job)})" for job in alive]

    def _terminate_job(self, job: BatchJob) -> str:
        """Terminates a job. Returns why that was refused, in words, and empty text where it was not."""
        try:
            self.jobs.terminate(job.id, REASON)
        except (ClientError, BotoCoreError) as problem:
            return f", and {problem}"
        return ""


def jobs_of(grid: Grid, jobs: BatchJobs) -> list[BatchJob]:
    """The grid's jobs that are not over. Raises ClientError or BotoCoreError."""
    return jobs.alive({tags.DEPLOYMENT: grid.deployment, tags.GRID: grid.id, tags.EXECUTION: grid.execution})
