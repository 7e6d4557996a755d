"""What a page is made of: facts that were read elsewhere, each absent where it could not be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aws.checkpoints import ClosedSet
from aws.facts import Status
from aws.state import AttemptEnd
from contract.curves import Curve
from contract.grid import Grid, Record
from contract.health import UnhealthyNode
from contract.intents import Intent
from contract.jobs import Job
from contract.reports import NodeReport


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """Of a job, whether it runs, waits, has ended, or was refused."""

    name: str
    """Of its execution."""
    deployment: str
    now: float
    """UTC epoch seconds."""
    status: Status | None
    """Of the execution, with its error and cause; None where Step Functions does not answer."""
    job: Job | None
    """None where the request was refused."""
    report: Mapping[str, Any] | None = None
    """report.json; None before the end of the first attempt."""
    waiting: Mapping[str, Any] | None = None
    """waiting.json, of a job that waits, or waited, for capacity."""
    walks: tuple[Intent, ...] = ()
    """In their order; of a wait, the newest alone."""
    ends: Mapping[int, AttemptEnd] = field(default_factory=dict)
    """By attempt."""
    reports: Mapping[int, Mapping[int, NodeReport]] = field(default_factory=dict)
    """The newest report of each node, by attempt and rank."""
    curve: Curve | None = None
    closed: tuple[ClosedSet, ...] = ()
    """Checkpoints, of every attempt and region."""
    unhealthy: tuple[UnhealthyNode, ...] = ()
    unread: tuple[str, ...] = ()
    """What could not be read, in words for a person; the page says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridFacts:
    """Of a grid."""

    name: str
    deployment: str
    now: float
    status: Status | None
    grid: Grid | None
    """None where the manifest was refused."""
    report: Mapping[str, Any] | None = None
    records: tuple[Record, ...] = ()
    """Of the lines that have ended, in the order of their index."""
    parameters: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """The hyperparameters of each line that has a record, by index."""
    bucket: str = ""
    """The home bucket."""
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFacts:
    """Of a search."""

    name: str
    deployment: str
    now: float
    status: Status | None
    search: Mapping[str, Any] | None
    """search.json; None where the input was refused."""
    report: Mapping[str, Any] | None = None
    """report.json; None before the end."""
    trials: tuple[Mapping[str, str], ...] = ()
    """Rows of trials.csv, by column."""
    bucket: str = ""
    unread: tuple[str, ...] = ()
