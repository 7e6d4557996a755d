"""The reaper's kinds for what grids leave behind: SageMaker trainings in every region; executions of lines, and Batch jobs, in the home
region."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aws import executions
from aws.batch import BatchJob, BatchJobs
from aws.belongings import Page, end_each, moment
from aws.clients import BRISK
from aws.facts import Belonging, Moment, Sort
from aws.service_models import narrow
from aws.trainings import RUNS, Training, Trainings, training
from contract import grid, names, tags
from contract.execution_facts import ENDED_BY, RUNNING, read_mark

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


class LinesLeft:
    """Executions of the Train machine that are lines of grids, in the home region. The names of a grid's lines differ in a number only, so
    the input of one stands for the group while scanning; just before an end, each execution's own input decides."""

    name, every_s, counted = "line-executions", 0.0, False

    def __init__(self, deployment: str, region: str, machine: str, grid_machine: str) -> None:
        """The ARNs of the Train machine and of the Grid machine."""
        self._deployment, self._region, self._machine = deployment, region, machine
        self._grids = f"{grid_machine.replace(':stateMachine:', ':execution:')}:"
        self._known: dict[str, str] = {}
        """Group to the grid's execution; empty text for a group of which none that was read is a grid's."""
        self._probes: Counter[str] = Counter()

    def pages(self) -> Iterator[Page]:
        prefix, now = grid.training_prefix(self._deployment), moment({})
        things = list[Belonging]()
        for one in executions.listed_running(self._machine, BRISK):
            if not one.name.startswith(prefix):
                continue
            group, _, number = one.name.rpartition("-")
            if not number.isdecimal():
                continue
            if not self._known.get(group) and self._probes[group] < PROBES:
                self._probes[group] += 1
                if (answer := executions.described(one.arn, BRISK)) is not None:
                    now, self._known[group] = moment(answer), self._read_grid(answer)
            if of := self._known.get(group):
                things.append(self._thing(one.arn, one.started_at, of))
        if things:
            yield Page(tuple(things), now)

    def again(self, ids: Sequence[str]) -> Page:
        """Reads each by its ARN. The time is the first answer's: a clock that lags only delays an end."""
        things, at = list[Belonging](), None
        for arn in ids:
            answer = executions.described(arn, BRISK)
            if answer is None:
                continue
            at = at or moment(answer)
            if answer["status"] == RUNNING and (of := self._read_grid(answer)):
                things.append(self._thing(arn, answer["startDate"].timestamp(), of))
        return Page(tuple(things), at or moment({}))

    def end(self, ids: Sequence[str]) -> dict[str, str]:
        return end_each(ids, lambda arn: executions.stop(arn, ENDED_BY, REASON))

    def _read_grid(self, answer: Mapping[str, Any]) -> str:
        """Returns the ARN of the grid whose line the execution is; empty where it is none of ours."""
        mark = read_mark(str(answer.get("input") or ""))
        if mark is None or not mark.execution.startswith(self._grids):
            return ""
        return mark.execution if grid.is_name_of(str(answer["name"]), self._deployment, mark) else ""

    def _thing(self, arn: str, started_at: float, of: str) -> Belonging:
        marks = {tags.DEPLOYMENT: self._deployment, tags.EXECUTION: of, tags.GRID: of.rpartition(":")[2]}
        return _belonging(Sort.LINE, arn, self._region, RUNNING, started_at, marks)


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
