"""Makes trainings of a manifest's lines: applies defaults, expands sweeps, and finds every mistake within a line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import IO, TypeVar

from contract.environments import GridLimits
from grid_plan import cells, manifest, sweeps
from grid_plan.columns import TrainingSpec, merged, source
from grid_plan.limits import allowed
from grid_plan.reading import read
from grid_plan.request import GridRequest

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Draft:
    """One training, or the problems of a line that makes none."""

    line: int
    training: TrainingSpec | None
    problems: tuple[str, ...] = ()
    wrong: frozenset[str] = frozenset()
    """Fields that are present and could not be read."""
    makes: int = 1
    """Number of trainings that the line makes by its sweep; each comes as its own draft, unless there are too many."""


@dataclass(slots=True)
class Drafts:
    """A manifest's trainings; they can be read several times."""

    request: GridRequest
    limits: GridLimits
    wrong_defaults: Collection[str] = ()
    _may_be: dict[str, str] = field(default_factory=dict)

    def read(self, file: IO[bytes]) -> Iterator[Draft]:
        """Yields drafts in the order of the lines, in bounded memory. Raises manifest.Unreadable."""
        self._may_be = allowed(self.limits)
        for entry in manifest.entries(file):
            if not entry.whole:
                yield Draft(entry.number, None, entry.problems)
                continue
            yield from self._trainings(entry)

    def _trainings(self, entry: manifest.ManifestLine) -> Iterator[Draft]:
        line, problems = read(entry.fields, self._may_be)
        problems = [*(self._with_allowed(one) for one in entry.problems), *problems]
        sweep, both = sweeps.of(line, self.request.sweep)
        problems += both
        names = {cells.SYNONYMS.get(name, name) for name in entry.fields} | {
            one.partition(":")[0] for one in entry.problems
        }
        wrong = frozenset(name for name in names if getattr(line, name, None) is None) | frozenset(self.wrong_defaults)
        training = merged(self.request.defaults, line)
        if (makes := sweeps.count(sweep)) > self.limits.max_lines:
            most = f"{self.limits.max_lines:,} (grid.limits.max_lines in cdk.json)"
            problems.append(f"sweep: makes {makes:,} trainings of this line; allowed: up to {most}")
            sweep = {}
        for one in sweeps.expanded(training, sweep):
            yield Draft(entry.number, one, tuple(problems), wrong, makes)

    def _with_allowed(self, problem: str) -> str:
        name = problem.partition(":")[0]
        return problem if "; allowed: " in problem else f"{problem}; allowed: {self._may_be.get(name, 'another value')}"


def digest(training: TrainingSpec) -> bytes:
    """Returns equal digests for equal trainings, whatever the order of their fields; 16 bytes, because a manifest may have 100,000."""
    text = json.dumps(source(training), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).digest()[:16]


def batches(items: Iterator[T], size: int) -> Iterator[list[T]]:
    while batch := list(islice(items, size)):
        yield batch
