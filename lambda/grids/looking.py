"""Looks up the training of each line of a grid that has no record yet, side by side and region by region."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws.grids import AT_ONCE, GridStore
from aws.trainings import STOPPING
from contract.grid import Backend, Grid, Line
from contract.records import not_started, record_of, refused
from grids.backends import LineBackend, backend_of
from grids.policy import Fate, decide_fate, describe_taken

logger = Logger(service="grid_collect")
PAGE = 500
"""Lines in memory at a time."""
FAILURES = 5
"""After this many failures in a row a region is not asked again in this look, because each may last a client's whole time-out."""


@dataclass(slots=True)
class GridState:
    """The lines without a record. Those for which this look wrote the record are only counted."""

    written: int = 0
    running: list[str] = field(default_factory=list)
    """Names of trainings that are not over, with where they are."""
    kept: list[str] = field(default_factory=list)
    """Trainings that were not stopped because a person protects them."""
    absent: list[int] = field(default_factory=list)
    """Lines without a training."""
    unknown: list[str] = field(default_factory=list)
    """Lines about which their backend or S3 did not answer, with the reason."""


@dataclass(slots=True)
class GridLook:
    """One look. `end` stops every training that runs and is not protected. `fenced` is the reason why no child can create a training
    any more; then a line without a training gets its record as well."""

    store: GridStore
    grid: Grid
    end: bool = False
    fenced: str = ""
    _found: GridState = field(default_factory=GridState)
    _failures: Counter[tuple[Backend, str]] = field(default_factory=Counter)

    def read_state(self) -> GridState:
        """Reads every line, even where one fails. Raises ClientError or BotoCoreError where the plan or the list of records
        cannot be read."""
        recorded = self.store.recorded(self.grid)
        lines = self.store.lines(self.grid.id, (index for index, there in enumerate(recorded) if not there))
        while page := list(islice(lines, PAGE)):
            with ThreadPoolExecutor(AT_ONCE) as pool:
                for line, (told, problem) in zip(page, pool.map(self._one, page), strict=True):
                    self._note(line, told, problem)
        return self._found

    def _note(self, line: Line, fate: Fate, problem: str) -> None:
        where = f"{line.training} in {line.region}"
        if problem:
            self._found.unknown.append(f"{where} ({problem})")
        elif fate is Fate.KEPT and self.end:
            self._found.kept.append(where)
        elif fate in {Fate.RUNS, Fate.KEPT}:
            self._found.running.append(where)
        elif fate is Fate.ABSENT and not self.fenced:
            self._found.absent.append(line.index)
        else:
            self._found.written += 1

    def _one(self, line: Line) -> tuple[Fate, str]:
        """The line's fate, or why it is not known."""
        place = (line.backend, line.region)
        if self._failures[place] >= FAILURES:
            return Fate.RUNS, f"{backend_of(line, self.store).service} does not answer in {line.region}"
        try:
            told = self._settle(line)
            self._failures[place] = 0
            return told, ""
        except (ClientError, BotoCoreError) as problem:
            self._failures[place] += 1
            logger.warning("a line could not be read", line=line.index, region=line.region, problem=str(problem))
            return Fate.RUNS, str(problem)

    def _settle(self, line: Line) -> Fate:
        """Writes the record of a line that has ended, or stops its training where that has to end."""
        backend = backend_of(line, self.store)
        found = backend.find(line, self.grid)
        told = decide_fate(found)
        if told is Fate.ABSENT and self.fenced:
            self._give_up(line, backend)
        elif found is not None and told is Fate.STRANGER:
            self.store.record(self.grid, refused(line, describe_taken(line, found.stranger)))
        elif found is not None and told is Fate.ENDED:
            self.store.record(self.grid, record_of(line, found.facts))
        elif found is not None and told is Fate.RUNS and self.end and found.facts.status != STOPPING:
            backend.stop(line)
        return told

    def _give_up(self, line: Line, backend: LineBackend) -> None:
        """Writes the record, then looks again, because a killed child's submission may arrive late. Children look for the record after
        they submit, so one of the two sees the other and stops the training."""
        self.store.record(self.grid, not_started(line, self.fenced))
        if decide_fate(backend.find(line, self.grid)) is Fate.RUNS:
            backend.stop(line)
