"""The grids' part of a destroy: stops every execution, terminates every Batch job, stops every training."""

from __future__ import annotations

import time
from dataclasses import dataclass

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws import executions
from aws.batch import BatchJobs
from aws.facts import Status
from aws.grids import GridStore
from aws.mpi_jobs import MpiJobs
from aws.trainings import RUNS, STOPPING, Training, Trainings
from contract import grid, names, tags
from contract.aws_errors import code_of
from contract.environments import DrainEnvironment
from drain.policy import IN_FLIGHT_S, STOP_REASON, refuse_protected_trainings

logger = Logger(service="drain")
REASON = STOP_REASON[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grids:
    """`there` says that the home bucket exists; `since` is when admission was closed, UTC epoch seconds."""

    env: DrainEnvironment
    since: float
    there: bool
    regions: list[str]

    def end(self) -> list[str]:
        """Returns a line for everything that is not over yet. Raises NotDrained where a person protects a training."""
        return [
            *self._stop_searches(),
            *self._stop_executions(),
            *self._end_pods(),
            *self._end_jobs(),
            *self._stop_trainings(),
        ]

    def _stop_searches(self) -> list[str]:
        """Stops the searches first: each would start another grid."""
        listed = executions.lately(self.env.search_machine, self.since - IN_FLIGHT_S) or {}
        running = [arn for arn, status in listed.items() if status in Status.RUNS]
        for arn in running:
            logger.info("stopped an execution", execution=arn)
            executions.stop(arn, *STOP_REASON)
        return [f"- {arn} was running a moment ago" for arn in running]

    def _stop_executions(self) -> list[str]:
        """Stops the executions that run. From then on, none of their children creates a training."""
        listed = executions.lately(self.env.grid_machine, self.since - IN_FLIGHT_S) or {}
        lines = []
        for arn, status in listed.items():
            if status in Status.RUNS:
                logger.info("stopped an execution", execution=arn)
                executions.stop(arn, *STOP_REASON)
                lines.append(f"- {arn} was running a moment ago")
            if self.there:
                GridStore(self.env.bucket).stop(arn.rpartition(":")[2], REASON, time.time())
        return lines

    def _end_pods(self) -> list[str]:
        """Deletes the MPIJobs of the cluster, whose own destroy follows: with the executions stopped, no child makes one again."""
        if not self.env.cluster_function:
            return []
        jobs = MpiJobs(self.env.cluster_function)
        try:
            found = jobs.listed()
            refuse_protected_trainings(
                [one.name for one in found if one.is_live and tags.PROTECTED in one.marks], "the cluster"
            )
            for one in found:
                jobs.delete(one.name)
        except (ClientError, BotoCoreError) as problem:
            if isinstance(problem, ClientError) and code_of(problem) == "ResourceNotFoundException":
                return []  # the function goes with the cluster's stack
            return [f"- MPIJobs could not be listed or deleted: {problem}"]
        return [f"- MPIJob {one.name} was there a moment ago" for one in found]

    def _end_jobs(self) -> list[str]:
        """Terminates the jobs. Trainings end all the same where Batch does not answer."""
        jobs = BatchJobs(names.grid_queue(self.env.deployment))
        try:
            alive = jobs.alive({tags.DEPLOYMENT: self.env.deployment})
            for job in alive:
                jobs.terminate(job.id, REASON)
        except (ClientError, BotoCoreError) as problem:
            return [f"- Batch jobs could not be listed or ended: {problem}"]
        return [f"- Batch job {job.name} is {job.status}" for job in alive]

    def _stop_trainings(self) -> list[str]:
        """Stops the trainings region by region; one that does not answer does not keep the others from being stopped."""
        lines: list[str] = []
        for region in self.regions:
            try:
                lines += self._stop_in(region)
            except (ClientError, BotoCoreError) as problem:
                lines.append(f"- trainings in {region} could not be listed or stopped: {problem}")
        return lines

    def _stop_in(self, region: str) -> list[str]:
        trainings = Trainings(region)
        prefix = grid.training_prefix(self.env.deployment)
        found: list[tuple[Training, dict[str, str]]] = [
            (one, marks)
            for status in (RUNS, STOPPING)
            for page, _ in trainings.listed(prefix, status)
            for one in page
            if (marks := trainings.tags(one.arn)).get(tags.DEPLOYMENT) == self.env.deployment
        ]
        refuse_protected_trainings([one.name for one, marks in found if tags.PROTECTED in marks], region)
        for one, _ in found:
            if one.status == RUNS:
                trainings.stop(one.name)
        return [f"- training {one.name} in {region} is {one.status}" for one, _ in found]
