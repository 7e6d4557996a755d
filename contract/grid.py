"""The grid: the plan that a manifest becomes, what a child does with one line of it, and the record that it leaves."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any

GRIDS = "grids/"
"""In the home bucket the decisions and records of grids, in a region's bucket of bytes what their trainings write."""
SHARD = 100
"""Lines in one object of the plan: a child reads one object for its line, and a plan of 10,000 is 100 objects."""
ARRAY = range(2, 10_001)
"""Sizes that Batch takes for an array; a single line is a plain job."""
ENDED_STATUSES = frozenset({"Completed", "Failed", "Stopped"})
"""Statuses of a training job that are its last."""


@dataclass(frozen=True, slots=True)
class GridPrefix:
    """Keys of one grid in the home bucket; its id is the name of its execution."""

    grid: str

    @property
    def root(self) -> str:
        return f"{GRIDS}{self.grid}/"

    @property
    def description(self) -> str:
        """The Grid, written by Plan after its lines, and once."""
        return f"{self.root}grid.json"

    @property
    def facts(self) -> str:
        """What Plan found out, written once before the first line: a repeat of Plan writes the same lines."""
        return f"{self.root}facts.json"

    def lines(self, index: int) -> str:
        """The object (JSON Lines of Line) that holds line `index`, at the place `index % SHARD`."""
        return f"{self.root}lines/{index // SHARD:06d}.jsonl"

    def work(self, round_: int) -> str:
        """From round 2 on: the indices (a JSON list) that lack a record; child n of the round does the n-th of them."""
        return f"{self.root}rounds/{round_}.json"

    @property
    def stopped(self) -> str:
        """There once the grid is to end: no child creates a training any more."""
        return f"{self.root}stopped.json"

    @property
    def records(self) -> str:
        return f"{self.root}records/"

    def record(self, index: int) -> str:
        """The final Record of a line, created once and never changed."""
        return f"{self.records}{index:08d}.json"

    @property
    def results_csv(self) -> str:
        return f"{self.root}results.csv"

    @property
    def results_jsonl(self) -> str:
        return f"{self.root}results.jsonl"

    @property
    def failed(self) -> str:
        """A manifest (JSON Lines) of the lines that did not complete, ready to be started again."""
        return f"{self.root}failed.jsonl"

    @property
    def report(self) -> str:
        return f"{self.root}report.json"

    def bytes(self, index: int) -> str:
        """Folder of one line's model artifacts and checkpoints, in the bucket of bytes of its region."""
        return f"{self.root}{index:08d}/"


_ANY = GridPrefix("*")
ANY_GRID = f"{GRIDS}*"
"""Patterns, for permissions: keys of GridPrefix of any grid, by who writes them."""
PLANNED = (_ANY.description, _ANY.facts, f"{_ANY.root}lines/*")
ANY_RECORD = f"{_ANY.records}*"
ANY_STOPPED = _ANY.stopped
COLLECTED = (_ANY.results_csv, _ANY.results_jsonl, _ANY.failed, _ANY.report, ANY_STOPPED, f"{_ANY.root}rounds/*")
ROUNDS = 3
"""How often the lines that lack a record and a training are given to Batch before the grid has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One training, as Plan decided it: the region is pinned, the request is sent as it stands."""

    index: int
    """From 0, over the whole grid."""
    line: int
    """Of the manifest, from 1; a sweep makes several of one."""
    region: str
    why: str
    """How the region was chosen, for a person."""
    slot: int
    """Its place among the lines of its region, from 0: it is submitted no earlier than `slot / pace` after the begin."""
    request: dict[str, Any]
    """Arguments of CreateTrainingJob, name and tags among them."""
    source: dict[str, Any]
    """The line as a manifest would say it again (JSON Lines form)."""
    hourly_usd: float | None = None
    """Of all its instances together; None: the price is not known."""

    @property
    def training(self) -> str:
        name: str = self.request["TrainingJobName"]
        return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The version of the manifest that was planned."""

    bucket: str
    key: str
    version: str
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """`grid.json`: what was planned. Every round, child and collection works from this."""

    id: str
    deployment: str
    execution: str
    """ARN."""
    started_at: str
    """Of the execution, as Step Functions writes it: a name may come back after 90 days."""
    owner: str
    planned_at: float
    """UTC epoch seconds; slots are counted from here."""
    manifest: Manifest
    lines: int
    regions: dict[str, int]
    """Region to its number of lines."""
    pace: float
    """Submissions a second and region."""
    cost_at_most_usd: float | None
    """All lines to their time-outs, at the planned prices; None where one is not known."""
    warnings: tuple[str, ...] = ()
    """What a person should know of the plan, and what does not keep it from being carried out."""


class LineOutcome(str, Enum):
    """How a line ended."""

    COMPLETED = "Completed"
    FAILED = "Failed"
    STOPPED = "Stopped"
    REFUSED = "Refused"
    """SageMaker did not take the request, or the name belongs to a stranger: no training of ours exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The final word on a line: exactly one a line, whoever writes it first."""

    index: int
    line: int
    region: str
    training: str
    outcome: LineOutcome
    reason: str
    """In words for a person; empty where it completed."""
    arn: str = ""
    seconds: float | None = None
    """From the start of the training to its end."""
    billable_seconds: float | None = None
    """As SageMaker says it: of the wall clock, spot savings taken off; it bills them for every instance."""
    cost_usd: float | None = None
    artifact: str = ""
    """`s3://` address of the model artifact."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Last values of the metric definitions."""
    submitted_at: float | None = None
    ended_at: float | None = None


class ExitCode(IntEnum):
    """How a child ends. Batch's rules know these numbers: what is final is not tried again."""

    DONE = 0
    """A record of the line stands, whatever it says."""
    FINAL = 64
    """No attempt can do better: the plan does not have the line, or a right is missing (EX_USAGE)."""
    AGAIN = 75
    """The next attempt goes on where this one stopped (EX_TEMPFAIL)."""


def training_name(deployment: str, execution: str, started_at: str, index: int) -> str:
    """Deterministic, and of this execution alone: the one key by which SageMaker knows a repeat.

    At most 63 characters: deployment (20), grid (20), digest (12), index (8) and three hyphens.
    """
    grid = re.sub(r"[^a-zA-Z0-9]+", "-", execution.rpartition(":")[2])[:20].strip("-")
    digest = hashlib.sha256(f"{execution} {started_at}".encode()).hexdigest()[:12]
    return "-".join(part for part in (deployment, grid, digest, str(index)) if part)


def training_prefix(deployment: str) -> str:
    """How the names of a deployment's trainings begin; another deployment's may begin so too: tags tell."""
    return f"{deployment}-"


def arrays(lines: int) -> list[tuple[int, int]]:
    """(first index, size) of the Batch jobs of so many lines: as few as possible, about equally long; size 1 is a plain job."""
    most = ARRAY[-1]
    count = -(-lines // most)
    sizes = [lines // count + (1 if place < lines % count else 0) for place in range(count)]
    return [(sum(sizes[:place]), size) for place, size in enumerate(sizes)]
