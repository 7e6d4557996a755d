"""The grid: the plan that a manifest becomes, what a child does with one line of it, and the record that it leaves."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any

from contract import names
from contract.codec import UNWRITTEN
from contract.keys import PAGE

GRIDS = "grids/"
"""Prefix of grids: the home bucket has their decisions and records, a region's bucket of bytes has what their trainings write."""
CODES = "grid-code/"
"""Prefix, in a region's bucket of bytes, of the code of lines; Plan writes it, and trainings read it."""
ANY_CODE = f"{CODES}*"
SHARD = 100
"""Lines in one object of the plan: a child reads one object for its line, and a plan of 10,000 lines has 100 objects."""
ARRAY = range(2, 10_001)
"""Sizes that Batch takes for an array; a single line becomes a plain job."""
ENDED_STATUSES = frozenset({"Completed", "Failed", "Stopped"})
"""Final statuses of a training."""


@dataclass(frozen=True, slots=True)
class GridPrefix:
    """Keys of one grid in the home bucket; its id is the name of its execution."""

    grid: str

    @property
    def root(self) -> str:
        return f"{GRIDS}{self.grid}/"

    @property
    def description(self) -> str:
        """Key of the Grid, which Plan writes once, after its lines."""
        return f"{self.root}grid.json"

    @property
    def manifest(self) -> str:
        """Key of the manifest (JSON Lines) that Plan writes of a query's rows; a grid that names a manifest has none."""
        return f"{self.root}manifest.jsonl"

    @property
    def facts(self) -> str:
        """Key of Plan's findings, written once before the first line, so that a repeat of Plan writes the same lines."""
        return f"{self.root}facts.json"

    def lines(self, index: int) -> str:
        """Key of the object (JSON Lines of Line) that holds line `index`, at position `index % SHARD`."""
        return f"{self.root}lines/{index // SHARD:06d}.jsonl"

    def work(self, round_: int) -> str:
        """Key of a round's work, from round 2 on: the indices (a JSON list) that lack a record; child n does the n-th of them."""
        return f"{self.root}rounds/{round_}.json"

    @property
    def stopped(self) -> str:
        """Key that exists once the grid must end; from then on no child creates a training."""
        return f"{self.root}stopped.json"

    @property
    def records(self) -> str:
        return f"{self.root}records/"

    def record(self, index: int) -> str:
        """Key of a line's final Record, created once and never changed."""
        return f"{self.records}{index:08d}.json"

    def submitted(self, index: int) -> str:
        """Key that exists once a line's MPIJob was made: one that is gone then is not made again. No pod may write it."""
        return f"{self.root}submitted/{index:08d}.json"

    @property
    def results_csv(self) -> str:
        return f"{self.root}results.csv"

    @property
    def results_jsonl(self) -> str:
        return f"{self.root}results.jsonl"

    @property
    def failed(self) -> str:
        """Key of a manifest (JSON Lines) of the lines that did not complete, ready to be started again."""
        return f"{self.root}failed.jsonl"

    @property
    def report(self) -> str:
        return f"{self.root}report.json"

    @property
    def page(self) -> str:
        return f"{self.root}{PAGE}"

    def bytes(self, index: int) -> str:
        """Folder of one line's model artifacts and checkpoints, in the bucket of bytes of its region."""
        return f"{self.root}{index:08d}/"

    def pod_notes(self, index: int) -> str:
        """Folder of what the pods of a line note of themselves, beside its models: the code of the line may write there too."""
        return f"{self.bytes(index)}pods/"

    def code(self, digest: str) -> str:
        """Folder of one archive of code, in the bucket of bytes of each region where lines run it: the lines of a region share it."""
        return f"{CODES}{self.grid}/{digest}/"

    def checkpoints(self, index: int) -> str:
        """Folder of one line's checkpoints, without a slash at its end, as SageMaker is given it."""
        return f"{self.bytes(index)}checkpoints"


_CHECKPOINTS = re.compile(rf"{GRIDS}({names.GRID_PATTERN.pattern})/[0-9]{{8}}/checkpoints")


def grid_of(folder: str) -> str:
    """Returns the grid of a key that GridPrefix.checkpoints made; empty for any other key."""
    found = _CHECKPOINTS.fullmatch(folder)
    return found[1] if found else ""


_ANY = GridPrefix("*")
ANY_GRID = f"{GRIDS}*"
"""Patterns, for permissions, of the keys of any grid, grouped by who writes them."""
PLANNED = (_ANY.description, _ANY.facts, f"{_ANY.root}lines/*")
ANY_QUERIED = _ANY.manifest
ANY_RECORD = f"{_ANY.records}*"
ANY_STOPPED = _ANY.stopped
ANY_SUBMITTED = f"{_ANY.root}submitted/*"
ANY_POD_NOTE = f"{GRIDS}*/pods/*"
COLLECTED = (_ANY.results_csv, _ANY.results_jsonl, _ANY.failed, _ANY.report, ANY_STOPPED, f"{_ANY.root}rounds/*")
ROUNDS = 3
"""How often lines that lack both a record and a training are submitted to Batch before the grid fails."""


class Backend(str, Enum):
    """What trains a line."""

    SAGEMAKER = "sagemaker"
    EC2 = "ec2"
    """Clusters of our own: the line is an execution of the Train machine."""
    KUBERNETES = "kubernetes"
    """A cluster of EKS: the line is an MPIJob."""

    @classmethod
    def of_later_version(cls) -> Backend:
        """A record shows it so; a line's request names no training of SageMaker's, so that nothing is submitted."""
        return cls.SAGEMAKER


NAMED = {Backend.SAGEMAKER: "TrainingJobName", Backend.EC2: "name", Backend.KUBERNETES: "name"}
"""The argument with the training's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One training as Plan decided it: its request is sent unchanged. In SageMaker its region is fixed too."""

    index: int
    """From 0, over the whole grid."""
    line: int
    """Line of the manifest, from 1; a sweep makes several trainings of one line."""
    region: str
    why: str
    """Why this region was chosen, for a person."""
    slot: int
    """Position among the lines of its region, from 0: it is submitted no earlier than `slot / pace` after the begin."""
    request: dict[str, Any]
    """Arguments of CreateTrainingJob, including the name and the tags; of StartExecution on clusters of our own; on Kubernetes the members
    of contract.mpi_job.PodRequest."""
    source: dict[str, Any]
    """The line as a manifest would say it again (JSON Lines form)."""
    hourly_usd: float | None = None
    """Hourly price of all its instances together; None where the price is unknown."""
    most_usd: float | None = None
    """The most that it costs, until its time-out or its own cap; None where that is unknown."""
    backend: Backend = Backend.SAGEMAKER

    @property
    def training(self) -> str:
        name: str = self.request[NAMED[self.backend]]
        return name


@dataclass(frozen=True, slots=True, kw_only=True)
class GridLine:
    """Names the grid's execution and the line whose job this is."""

    execution: str
    """ARN of the grid's execution."""
    index: int
    """From 0, over the whole grid."""

    @property
    def grid(self) -> str:
        return self.execution.rpartition(":")[2]


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
    """When the execution started, as Step Functions writes it: the name may be used again after 90 days."""
    owner: str
    planned_at: float
    """UTC epoch seconds; slots are counted from here."""
    manifest: Manifest
    lines: int
    regions: dict[str, int]
    """Number of lines by region."""
    pace: float
    """Submissions per second and region."""
    cost_at_most_usd: float | None
    """Cost if every line ran until its time-out, at the planned prices; None where a price is unknown."""
    warnings: tuple[str, ...] = ()
    """Warnings about the plan for a person; the plan is carried out all the same."""


class LineOutcome(str, Enum):
    """How a line ended."""

    COMPLETED = "Completed"
    FAILED = "Failed"
    STOPPED = "Stopped"
    REFUSED = "Refused"
    """The backend rejected the request, or the name belongs to a stranger's training: no training of ours exists."""

    @classmethod
    def of_later_version(cls) -> LineOutcome:
        """The line is among those to start again, and nothing starts it by itself."""
        return cls.FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The final result of a line: exactly one per line, from whoever writes it first."""

    index: int
    line: int
    region: str
    training: str
    outcome: LineOutcome
    reason: str
    """The reason in words for a person; empty where the line completed."""
    arn: str = ""
    seconds: float | None = None
    """Seconds from the start of the training to its end."""
    billable_seconds: float | None = None
    """Billable seconds by SageMaker's count: wall-clock time less spot savings. SageMaker bills them for every instance."""
    cost_usd: float | None = None
    artifact: str = ""
    """`s3://` address of the model artifact; of the folder of artifacts on clusters of our own."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Last values of the metric definitions, as far as they are finite numbers."""
    metric_problems: dict[str, str] = field(default_factory=dict)
    """By name, why a metric has no value."""
    submitted_at: float | None = None
    ended_at: float | None = None
    backend: Backend = Backend.SAGEMAKER
    log: str = ""
    """The console's address of the training's log; empty where there was no training."""
    own_failure: bool | None = field(default=None, metadata=UNWRITTEN)
    """Whether the training itself is the cause of its end, and not its machines, a quota, an image or a person; None where it completed,
    and in records of older versions."""

    @property
    def explanation(self) -> str:
        """The reason; of a line that completed, why metrics have no value."""
        return self.reason or "; ".join(f"{name}: {one}" for name, one in sorted(self.metric_problems.items()))


class ExitCode(IntEnum):
    """Exit codes of a child. Batch's retry rules use these numbers: a final result is not retried."""

    DONE = 0
    """The line has a record, whatever it says."""
    FINAL = 64
    """No attempt can succeed: the plan lacks the line, or a permission is missing (EX_USAGE)."""
    AGAIN = 75
    """The next attempt continues where this one stopped (EX_TEMPFAIL)."""


HYPHEN = "X"
"""Stands for a hyphen of a deployment's name in the names of its trainings."""


def training_name(deployment: str, execution: str, started_at: str, index: int) -> str:
    """Returns a deterministic name, unique to this execution: the one key by which SageMaker recognises a repeat.

    At most 63 characters: deployment (20), grid (20), digest (12), index (8) and three hyphens.
    """
    grid = _shorten(execution)
    return training_prefix(deployment) + "-".join(
        part for part in (grid, _digest(execution, started_at), str(index)) if part
    )


def mpi_job_name(execution: str, started_at: str, index: int) -> str:
    """Returns the name of a line's MPIJob, unique to this execution as a training's is.

    At most 43 characters: the operator adds `-worker-<number>` and needs a label of DNS, of 63 small letters, digits and hyphens that
    begins with a letter. The namespace says whose deployment it is.
    """
    grid = _shorten(execution).lower()
    name = "-".join(part for part in (grid, _digest(execution, started_at), str(index)) if part)
    return name if name[0].isalpha() else f"g{name}"


def _digest(execution: str, started_at: str) -> str:
    return hashlib.sha256(f"{execution} {started_at}".encode()).hexdigest()[:12]


def _shorten(execution: str) -> str:
    """Returns what the names of a grid's trainings have of the grid's own; may be empty."""
    return re.sub(r"[^a-zA-Z0-9]+", "-", execution.rpartition(":")[2])[:20].strip("-")


def is_name_of(name: str, deployment: str, line: GridLine) -> bool:
    """Whether `training_name` gives such a name to the line, whenever its grid started."""
    grid = re.escape(_shorten(line.execution))
    middle = f"{grid}-" if grid else ""
    return re.fullmatch(f"{training_prefix(deployment)}{middle}[0-9a-f]{{12}}-{line.index}", name) is not None


def training_prefix(deployment: str) -> str:
    """Returns the prefix of a deployment's training names, with which no other deployment's begin: IAM keeps them apart by it, because log
    streams have no tags. Deployments have no capital letters in their names, so `a-b` becomes what no grid of `a` begins with."""
    return f"{deployment.replace('-', HYPHEN)}-"


def arrays(lines: int) -> list[tuple[int, int]]:
    """Splits lines into as few Batch jobs of about equal size as possible: (first index, size) of each; size 1 is a plain job."""
    most = ARRAY[-1]
    count = -(-lines // most)
    sizes = [lines // count + (1 if place < lines % count else 0) for place in range(count)]
    return [(sum(sizes[:place]), size) for place, size in enumerate(sizes)]
