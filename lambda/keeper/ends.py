"""Reads what an execution has left: the row of a job, or those of a grid's lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import tee

from aws import executions
from aws.grids import GridStore
from aws.s3 import HomeBucket
from contract.catalogue_environments import KeeperEnvironment
from contract.execution_facts import REPORTED_S, RUNNING, read_mark, read_report
from contract.grid import Grid, GridPrefix
from contract.keys import JobPrefix
from contract.records import to_epoch
from contract.search import read_search_of
from keeper.rows import RunRow, describe_job, describe_line, kind_of


class NotReported(Exception):
    """The execution is over, and its report is still being written."""


class Ends:
    """What has ended, by the ARN of its execution. Step Functions says whether and how, whatever an event said."""

    def __init__(self, env: KeeperEnvironment, clock: Callable[[], float]) -> None:
        self._env, self._clock = env, clock
        self._home, self._grids = HomeBucket(env.bucket), GridStore(env.bucket)

    def read(self, arn: str) -> Iterator[RunRow]:
        """Yields the rows of an execution of the Train or the Grid machine; none for one that runs, is gone, or began nothing. Raises
        NotReported, and AWS's errors."""
        grids = self._env.grid_machine.replace(":stateMachine:", ":execution:")
        return self._read_grid(arn) if arn.startswith(f"{grids}:") else self._read_job(arn)

    def is_line(self, arn: str) -> bool:
        """Whether the input of an execution of the Train machine says that it is a grid's line. Raises AWS's errors."""
        answer = executions.described(arn)
        return answer is not None and read_mark(str(answer.get("input") or "")) is not None

    def _read_job(self, arn: str) -> Iterator[RunRow]:
        answer = executions.described(arn)
        if answer is None or answer["status"] == RUNNING or read_mark(str(answer.get("input") or "")):
            return  # the record of a grid's line tells of it
        name = str(answer["name"])
        job = self._home.job(name)
        if job is None or not job.belongs_to(arn, to_epoch(answer["startDate"])):
            return
        report = read_report(self._home.get(JobPrefix(name).result))
        row = describe_job(job, answer, report, now=self._clock())
        if row is None:
            raise NotReported(f"the report of {name} is not written yet")
        yield row

    def _read_grid(self, arn: str) -> Iterator[RunRow]:
        answer = executions.described(arn)
        if answer is None or answer["status"] == RUNNING:
            return
        name, ended_at = str(answer["name"]), to_epoch(answer.get("stopDate")) or self._clock()
        grid = self._grids.grid(name)
        if grid is None or grid.execution != arn:
            return
        if self._grids.head(GridPrefix(name).report) is None and self._clock() < ended_at + REPORTED_S:
            raise NotReported(f"the report of {name} is not written yet")
        yield from self._read_lines(grid, kind_of(read_search_of(name, answer.get("input"))), ended_at)

    def _read_lines(self, grid: Grid, kind: str, ended_at: float) -> Iterator[RunRow]:
        """Reads plan and records side by side, a page of each in memory."""
        records, again = tee(self._grids.records(grid))
        lines = self._grids.lines(grid.id, (one.index for one in again))
        for record, line in zip(records, lines, strict=True):
            yield describe_line(grid, line, record, kind, ended_at=ended_at)
