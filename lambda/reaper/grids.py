"""The reaper's kinds for what grids leave behind: SageMaker trainings in every region; executions of lines, and Batch jobs, in the home
region."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aws.batch import BatchJob, BatchJobs
from aws.belongings import Page, end_each, moment
from aws.facts import Belonging, Moment, Sort
from aws.service_models import narrow
from aws.trainings import RUNS, Training, Trainings, training
from contract import grid, names, tags

PROBES = 3
"""At most this many trainings of a group are read for their tags until one of them is ours."""
REASON = "The grid of this job is over."


class TrainingsLeft:
    """Trainings that run under the deployment's names.

    A listing has no tags, and reading each training's would take one call each. The names of a grid's trainings differ in a number
    only, so the tags of one stand for the group while scanning. Just before an end, each training's own tags decide.
    """

    name, every_s, counted = "trainings", 0.0, True

    def __init__(self, deployment: str, region: str) -> None:
        self._deployment, self._region = deployment, region
        self._trainings = Trainings(region, narrow.client("sagemaker", region))
        self._marks: dict[str, dict[str, str]] = {}
        """Group to the tags that stand for it."""
        self._probes: dict[str, int] = {}

    def pages(self) -> Iterator[Page]:
        prefix = grid.training_prefix(self._deployment)
        for some, answer in self._trainings.listed(prefix, RUNS):
            yield Page(tuple(self._thing(one, self._read_marks(one)) for one in some), moment(answer))

    def again(self, ids: Sequence[str]) -> Page:
        """Reads each by name. The time is the first answer's: a clock that lags only delays an end."""
        found: list[Belonging] = []
        at: Moment | None = None
        for name in ids:
            answer = self._trainings.described(name)
            if answer is None:
                continue
            at = at or moment(answer)
            one = training(answer)
            if one.status == RUNS:
                found.append(self._thing(one, self._trainings.tags(one.arn)))
        return Page(tuple(found), at or moment({}))

    def end(self, ids: Sequence[str]) -> dict[str, str]:
        return end_each(ids, self._trainings.stop)

    def _read_marks(self, one: Training) -> Mapping[str, str]:
        group = one.name.rpartition("-")[0]
        known = self._marks.get(group)
        if known is not None and known.get(tags.DEPLOYMENT) == self._deployment:
            return known
        if self._probes.get(group, 0) >= PROBES:
            return known or {}
        self._probes[group] = self._probes.get(group, 0) + 1
        found = self._trainings.tags(one.arn)
        # A protection is one training's own: it counts when that training's tags are read, just before an end.
        self._marks[group] = {key: value for key, value in found.items() if key != tags.PROTECTED}
        return self._marks[group]

    def _thing(self, one: Training, marks: Mapping[str, str]) -> Belonging:
        return _belonging(Sort.TRAINING, one.name, self._region, one.status, one.created_at, marks)


class JobsLeft:
    """Jobs of the grid's queue that are not over; an array counts as one."""

    name, every_s, counted = "batch-jobs", 0.0, False

    def __init__(self, deployment: str, region: str) -> None:
        self._region = region
        self._ours = {tags.DEPLOYMENT: deployment}
        self._jobs = BatchJobs(names.grid_queue(deployment), narrow.client("batch", region))

    def pages(self) -> Iterator[Page]:
        alive = self._jobs.alive(self._ours)
        if self._jobs.answer:  # without the queue there is no answer to take the time from
            yield self._page(alive)

    def again(self, ids: Sequence[str]) -> Page:
        there = {one.id for one in self._jobs.alive(self._ours)}
        return self._page([one for one in self._jobs.described(list(ids)) if one.id in there])

    def end(self, ids: Sequence[str]) -> dict[str, str]:
        return end_each(ids, lambda job: self._jobs.terminate(job, REASON))

    def _page(self, jobs: Sequence[BatchJob]) -> Page:
        things = (_belonging(Sort.JOB, one.id, self._region, one.status, one.created_at, one.tags) for one in jobs)
        return Page(tuple(things), moment(self._jobs.answer))


def _belonging(sort: Sort, id_: str, region: str, state: str, born_at: float, marks: Mapping[str, str]) -> Belonging:
    return Belonging(
        id=id_,
        sort=sort,
        region=region,
        state=state,
        born_at=born_at,
        deployment=marks.get(tags.DEPLOYMENT),
        protected=tags.PROTECTED in marks,
        execution=marks.get(tags.EXECUTION, ""),
        job=marks.get(tags.GRID, ""),
        owner=marks.get(tags.OWNER, ""),
    )
