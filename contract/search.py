"""The search: its keys in the home bucket, what its first step settles, and the names of its rounds' grids."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from contract.codec import UNWRITTEN
from contract.grid import LineOutcome
from contract.keys import PAGE

SEARCHES = "searches/"
"""Prefix of searches in the home bucket."""
ANY_SEARCH = f"{SEARCHES}*"
STARTED_BY = "AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID"
"""Field of an execution's input with the ARN of the execution that started it; Step Functions' console links the two by it."""
MOST_ROUNDS = 1000
"""A round takes about 20 events of the history, and an execution has 25,000 (Step Functions' quotas)."""
MOST_TRIALS = 5000


@dataclass(frozen=True, slots=True)
class SearchPrefix:
    """Keys of one search in the home bucket; its id is the name of its execution."""

    search: str

    @property
    def root(self) -> str:
        return f"{SEARCHES}{self.search}/"

    @property
    def description(self) -> str:
        """Key of the Search, which the first Ask writes once."""
        return f"{self.root}search.json"

    @property
    def rounds(self) -> str:
        return f"{self.root}rounds/"

    def questions(self, round_: int) -> str:
        """Key of a round's manifest (JSON Lines), from round 1: a line for each trial. Written once, before the round's grid starts."""
        return f"{self.rounds}{round_}.jsonl"

    @property
    def trials(self) -> str:
        return f"{self.root}trials.csv"

    @property
    def best(self) -> str:
        return f"{self.root}best.json"

    @property
    def report(self) -> str:
        return f"{self.root}report.json"

    @property
    def page(self) -> str:
        return f"{self.root}{PAGE}"


def name_round(search: str, round_: int | str) -> str:
    """Returns the name of a round's grid; for permissions, of any."""
    return f"{search}-r{round_}"


def is_round_of(grid: str, search: str) -> bool:
    """Whether `name_round` gives such a name to a round of the search."""
    return re.fullmatch(rf"{re.escape(search)}-r[1-9][0-9]*", grid) is not None


def read_search_of(grid: str, given: object) -> str:
    """Returns the ARN of the search whose round the grid is, by the grid's name and input (JSON text); empty where it is none. The
    manifest of a round has the round's own number. A person's grid with a copied input has another name, and is no round."""
    try:
        found = json.loads(given) if isinstance(given, str) else None
    except (ValueError, RecursionError):
        return ""
    starter, manifest = (found.get(STARTED_BY), found.get("manifest")) if isinstance(found, dict) else ("", "")
    if not isinstance(starter, str) or not isinstance(manifest, str):
        return ""
    search = starter.rpartition(":")[2]
    number = grid.removeprefix(name_round(search, "")) if is_round_of(grid, search) else ""
    lines = SearchPrefix(search).questions(int(number)) if number else ""
    return starter if lines and manifest.endswith(f"/{lines}") else ""


MOST_NAME = 80 - len(name_round("", MOST_ROUNDS))
PATTERN = re.compile(rf"[A-Za-z0-9_-]{{1,{MOST_NAME}}}")
"""Names of searches: with a round's number behind them they are names of grids."""
NAME_WORDS = f"1 to {MOST_NAME} letters, digits, _ and -"


class Direction(str, Enum):
    """Whether a small value of the objective is good, or a large one."""

    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"

    def is_better(self, one: float, other: float) -> bool:
        return one > other if self is Direction.MAXIMIZE else one < other


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One set of parameters, and what became of its training."""

    number: int
    """From 0, over all rounds of a search and of the one that it resumes; -1 for one of a warm start, which does not count."""
    parameters: dict[str, Any]
    value: float | None
    """The objective; None where the trial failed."""
    outcome: str
    """As in the record of its line: Completed, Failed, Stopped or Refused; empty for a line without a record."""
    reason: str
    """Why it has no value, for a person."""
    grid: str
    """The grid that trained it ..."""
    index: int
    """... and its line there, from 0."""
    region: str = ""
    training: str = ""
    seconds: float | None = None
    cost_usd: float | None = None
    """What it cost; where that is not known, the most that it may have cost."""
    artifact: str = ""
    log: str = ""
    own_failure: bool | None = field(default=None, metadata=UNWRITTEN)
    """As in the record of its line."""

    @property
    def failed_by_itself(self) -> bool:
        """Whether its parameters may be why it has no value. Where its record does not say so, the outcome decides: a training that
        completed without the objective has diverged."""
        if self.value is not None:
            return False
        known = self.own_failure
        return self.outcome in {LineOutcome.FAILED.value, LineOutcome.COMPLETED.value} if known is None else known


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """`search.json`: what was asked for, and what earlier searches contribute."""

    id: str
    deployment: str
    execution: str
    """ARN."""
    started_at: str
    """When the execution started, as Step Functions writes it."""
    given: dict[str, Any]
    """The execution's input; of a resumed search that of the first one, with the fields that were given anew."""
    earlier: tuple[Trial, ...] = ()
    """Trials of the search that this one resumes, and of its warm start."""
    first: tuple[dict[str, Any], ...] = ()
    """Parameters that are asked before those of the sampler; first of all those that a resumed search began and did not finish."""
    most_usd: tuple[float, ...] = ()
    """The most that a trial of each place could cost when the search began; empty without a cap."""
    spent_usd: float = 0.0
    """What the search that this one resumes has cost."""
    warnings: tuple[str, ...] = ()
