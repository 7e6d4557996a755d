"""Writes one page: reads its facts as they are now, renders them, and decides whether it has to be written again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aws_lambda_powertools import Logger

from aws import executions
from aws.facts import GONE, Status
from aws.s3 import HomeBucket
from contract.codec import decode
from contract.grid import Grid, GridPrefix
from contract.jobs import Job
from contract.keys import READ_AT, WHOLE, JobPrefix
from contract.search import Search, SearchPrefix
from page_writer.grids import GridSources, read_grid
from page_writer.jobs import JobSources, read_job
from page_writer.policy import DuePage, PageKind, WrittenPage, reports_end
from page_writer.reading import MOST_DOCUMENT, FactReader
from page_writer.searches import SearchSources, read_search
from pages.grid import write_grid
from pages.job import write_job
from pages.search import write_search

logger = Logger(service="page_writer")
SAME_S = 60.0
"""Two starts of an execution so close to each other are one, however they are written."""
REPORTED = {PageKind.JOB: "ended_at", PageKind.GRID: "reported_at", PageKind.SEARCH: "reported_at"}
"""The field of a report that says when it was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageWriter:
    """Writes pages of executions of the deployment's machines."""

    home: HomeBucket
    jobs: JobSources
    grids: GridSources
    searches: SearchSources
    clock: Callable[[], float]
    """UTC epoch seconds."""

    def write(self, due: DuePage) -> bool:
        """Returns whether the page has everything that it will ever have, so that nothing has to be written again. Raises what Step
        Functions or S3 answer where nothing can be said of the execution."""
        now = self.clock()
        status = executions.status(due.execution)
        if status.name == GONE:
            logger.warning("dropped: there is no such execution", execution=due.execution)
            return True
        reader = FactReader()
        begun = self._find(due, reader)
        if begun is not None and not _is_of(begun, due.execution, status):
            logger.warning("dropped: the name belongs to an earlier execution", execution=due.execution)
            return True
        if begun is None and not reader.unread and (status.runs or status.name == "SUCCEEDED"):
            return not status.runs  # it is being checked, or was only planned
        page, report = self._render(due, reader, begun, status, now)
        is_whole = not status.runs and not reader.is_away and (begun is None or _covers(due.kind, report, status))
        self.home.put_page(locate(due.kind, due.name), page, {READ_AT: f"{now:.3f}", WHOLE: str(int(is_whole))})
        logger.info(
            "wrote a page", execution=due.execution, status=status.name, is_whole=is_whole, unread=reader.unread
        )
        return is_whole or status.runs

    def find_written(self, kind: PageKind, name: str) -> WrittenPage | None:
        """Returns what the page that is there says of itself; None where there is none, or it does not say it."""
        marks = self.home.read_marks(locate(kind, name))
        try:
            return WrittenPage(read_at=float(marks[READ_AT]), is_whole=marks[WHOLE] == "1") if marks else None
        except (KeyError, ValueError):
            return None

    def _find(self, due: DuePage, reader: FactReader) -> Job | Grid | Search | None:
        """Returns what the execution's first step wrote; None where there is nothing, and where that cannot be read."""
        kind, key = {
            PageKind.JOB: (Job, JobPrefix(due.name).description),
            PageKind.GRID: (Grid, GridPrefix(due.name).description),
            PageKind.SEARCH: (Search, SearchPrefix(due.name).description),
        }[due.kind]
        body = self.home.get(key, most=MOST_DOCUMENT)
        return None if body is None else reader.attempt(key.rpartition("/")[2], lambda: decode(kind, body), None)

    def _render(
        self, due: DuePage, reader: FactReader, begun: Job | Grid | Search | None, status: Status, now: float
    ) -> tuple[bytes, Mapping[str, Any] | None]:
        """Returns the page, and the report that is in it."""
        match due.kind:
            case PageKind.JOB:
                job = begun if isinstance(begun, Job) else None
                of_job = read_job(self.jobs, reader, job, due.name, status, now=now)
                return write_job(of_job), of_job.report
            case PageKind.GRID:
                grid = begun if isinstance(begun, Grid) else None
                of_grid = read_grid(self.grids, reader, grid, due.name, status, now=now)
                return write_grid(of_grid), of_grid.report
            case PageKind.SEARCH:
                search = begun if isinstance(begun, Search) else None
                of_search = read_search(self.searches, reader, search, due.name, status, now=now)
                return write_search(of_search), of_search.report


def locate(kind: PageKind, name: str) -> str:
    """Returns the key of a page."""
    prefix = {PageKind.JOB: JobPrefix(name), PageKind.GRID: GridPrefix(name), PageKind.SEARCH: SearchPrefix(name)}
    return prefix[kind].page


def _is_of(begun: Job | Grid | Search, execution: str, status: Status) -> bool:
    """Whether this very execution began it: 90 days after its end another one may have its name, and so its ARN. Where a start is
    unknown, the ARN decides."""
    if isinstance(begun, Job):
        return begun.belongs_to(execution, status.started_at)
    try:
        began = datetime.fromisoformat(begun.started_at).timestamp()
    except ValueError:
        return begun.execution == execution
    return begun.execution == execution and (status.started_at is None or abs(began - status.started_at) < SAME_S)


def _covers(kind: PageKind, report: Mapping[str, Any] | None, status: Status) -> bool:
    return status.ended_at is not None and reports_end(report, REPORTED[kind], status.ended_at)
