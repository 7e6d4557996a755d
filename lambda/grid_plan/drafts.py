"""Makes trainings of a manifest's lines: applies defaults, expands sweeps, and finds every mistake within a line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import IO, Any, TypeVar

from contract.environments import GridDefaults, GridLimits
from contract.request_rules import NO_RULES, RequestRules
from grid_plan import manifest, sweeps
from grid_plan.cluster_lines import TYPED, ClusterSpec, is_cluster_line, list_warnings, read_cluster_line
from grid_plan.columns import TrainingSpec
from grid_plan.limits import allowed
from grid_plan.merging import merged, source
from grid_plan.reading import read, rename
from grid_plan.request import GivenDefaults, GridRequest

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Draft:
    """One training, or the problems of a line that makes none."""

    line: int
    training: TrainingSpec | ClusterSpec | None
    problems: tuple[str, ...] = ()
    wrong: frozenset[str] = frozenset()
    """Fields that are present and could not be read."""
    warnings: tuple[str, ...] = ()
    makes: int = 1
    """Number of trainings that the line makes by its sweep; each comes as its own draft, unless there are too many."""


@dataclass(slots=True)
class Drafts:
    """A manifest's trainings; they can be read several times."""

    request: GridRequest
    limits: GridLimits
    settings: GridDefaults
    given: GivenDefaults
    rules: RequestRules = NO_RULES
    _may_be: dict[str, str] = field(default_factory=dict)

    def read(self, file: IO[bytes]) -> Iterator[Draft]:
        """Yields drafts in the order of the lines, in bounded memory. Raises manifest.Unreadable."""
        self._may_be = allowed(self.limits)
        for entry in manifest.entries(file):
            if not entry.whole:
                yield Draft(entry.number, None, entry.problems)
                continue
            yield from self._vary(*self._read(entry))

    def _read(self, entry: manifest.ManifestLine) -> tuple[Draft, TrainingSpec, sweeps.Sweep]:
        """Returns a line as one draft, its hyperparameters with those of the defaults, and its sweep."""
        fields, problems = rename(entry.fields)
        problems = [*(self._with_allowed(one) for one in entry.problems), *problems]
        is_cluster = is_cluster_line(fields, self.given.fields)
        typed = {name: fields[name] for name in TYPED if name in fields} if is_cluster else fields
        line, found = read(typed, self._may_be)
        sweep, both = sweeps.of(line, self.request.sweep)
        problems += [*found, *both]
        whole = merged(self.request.defaults, line)
        if is_cluster:
            job, wrong = read_cluster_line(fields, self.given.fields, self.settings, self.rules)
            has_words = bool(sweep or whole.hyperparameters)
            warnings = tuple(list_warnings(job, {**self.given.fields, **fields}, has_words=has_words))
            return Draft(entry.number, job, (*problems, *wrong), warnings=warnings), whole, sweep
        names = fields.keys() | {one.partition(":")[0] for one in entry.problems}
        wrong_names = frozenset(name for name in names if getattr(line, name, None) is None) | self.given.wrong
        return Draft(entry.number, whole, (*problems, *self.given.of_sagemaker), wrong_names), whole, sweep

    def _vary(self, draft: Draft, whole: TrainingSpec, sweep: sweeps.Sweep) -> Iterator[Draft]:
        """Yields a draft for every combination of the sweep."""
        if (makes := sweeps.count(sweep)) > self.limits.max_lines:
            most = f"{self.limits.max_lines:,} (grid.limits.max_lines in cdk.json)"
            problem = f"sweep: makes {makes:,} trainings of this line; allowed: up to {most}"
            draft, sweep = replace(draft, problems=(*draft.problems, problem)), {}
        for one in sweeps.expanded(whole, sweep):
            made = draft.training
            if isinstance(made, ClusterSpec):
                made = replace(made, hyperparameters=one.hyperparameters or {})
            yield replace(draft, training=made if isinstance(made, ClusterSpec) else one, makes=makes)

    def _with_allowed(self, problem: str) -> str:
        name = problem.partition(":")[0]
        return problem if "; allowed: " in problem else f"{problem}; allowed: {self._may_be.get(name, 'another value')}"


def describe_source(training: TrainingSpec | ClusterSpec) -> dict[str, Any]:
    """Returns the training as a line of JSON that needs no defaults."""
    return training.source if isinstance(training, ClusterSpec) else source(training)


def digest(training: TrainingSpec | ClusterSpec) -> bytes:
    """Returns equal digests for equal trainings, whatever the order of their fields; 16 bytes, because a manifest may have 100,000."""
    text = json.dumps(describe_source(training), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).digest()[:16]


def batches(items: Iterator[T], size: int) -> Iterator[list[T]]:
    """Yields the items in lists of this size, the last one shorter; where the items end with an error, what came before it first."""
    batch = list[T]()
    try:
        for one in items:
            batch.append(one)
            if len(batch) == size:
                yield batch
                batch = []
    except Exception:
        yield batch
        raise
    if batch:
        yield batch
