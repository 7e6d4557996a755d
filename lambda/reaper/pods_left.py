"""The reaper's kind for MPIJobs of a cluster of Kubernetes, in the home region."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aws.belongings import Page, end_each, moment
from aws.facts import Belonging, Sort
from aws.mpi_jobs import MpiJobs
from contract import tags
from contract.cluster_calls import PodJob
from contract.mpi_job_facts import FAILED

REASON = f"{FAILED}: the grid of this line is over, and the reaper ended it"
RUNS = "Running"


class PodsLeft:
    """MPIJobs of the deployment that may have pods. Those that have ended stay for a month, so that no name is made twice."""

    name, every_s, counted = "mpi-jobs", 0.0, True

    def __init__(self, deployment: str, region: str, function: str) -> None:
        self._deployment, self._region, self._jobs = deployment, region, MpiJobs(function)

    def pages(self) -> Iterator[Page]:
        now = moment({})  # before the question: a clock that lags only delays an end
        yield Page(tuple(self._describe(one) for one in self._jobs.listed(only_open=True) if one.is_live), now)

    def again(self, ids: Sequence[str]) -> Page:
        (page,) = self.pages()
        return Page(tuple(one for one in page.things if one.id in ids), page.moment)

    def end(self, ids: Sequence[str]) -> dict[str, str]:
        return end_each(ids, lambda name: self._jobs.end(name, REASON))

    def _describe(self, job: PodJob) -> Belonging:
        marks = job.marks
        return Belonging(
            id=job.name,
            sort=Sort.MPI_JOB,
            region=self._region,
            state=RUNS,
            born_at=job.created_at,
            deployment=marks.get(tags.DEPLOYMENT),
            protected=tags.PROTECTED in marks,
            execution=marks.get(tags.EXECUTION, ""),
            job=marks.get(tags.GRID, ""),
            owner=marks.get(tags.OWNER, ""),
        )
