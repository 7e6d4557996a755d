"""Reads the facts of a grid's page: its plan, the records of its lines, and its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from aws.facts import Status
from aws.grids import GridStore
from contract.codec import Garbled, decode
from contract.grid import Grid, GridPrefix, Record
from page_writer.reading import FactReader
from pages.facts import GridFacts

MOST_RESULTS = 64 * 1024**2
"""Bytes of results.jsonl that are read at once, at most; of a larger one the records are read one by one, with short reasons."""
MOST_REASON = 2000
"""Characters of a line's reason that are kept in memory: a grid may have 10,000 lines, and a cause 30,000 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridSources:
    """Where the facts of grids are."""

    deployment: str
    store: GridStore


def read_grid(
    sources: GridSources, reader: FactReader, grid: Grid | None, name: str, status: Status, *, now: float
) -> GridFacts:
    """Returns the facts; `grid` is None where its plan is not written. What cannot be read is in `unread`, and nothing of it raises."""
    store, prefix = sources.store, GridPrefix(name)
    report, records, parameters = None, list[Record](), dict[int, Mapping[str, Any]]()
    if grid is not None:
        report = reader.json(store, prefix.report)
        records = reader.attempt("records of lines", partial(_read_records, store, grid, is_over=not status.runs), [])
        indices = [one.index for one in records]
        parameters = reader.attempt("hyperparameters", partial(_read_parameters, store, grid.id, indices), {})
    return GridFacts(
        name=name,
        deployment=sources.deployment,
        now=now,
        status=status,
        grid=grid,
        report=report,
        records=tuple(records),
        parameters=parameters,
        bucket=store.name,
        unread=tuple(reader.unread),
    )


def _read_records(store: GridStore, grid: Grid, *, is_over: bool) -> list[Record]:
    """Returns the records by index. One object has all of them once the grid has ended, unless that was another end of it."""
    head = store.head(GridPrefix(grid.id).results_jsonl) if is_over else None
    if head is not None and head.size <= MOST_RESULTS:
        lines = (store.get(head.key) or b"").splitlines()
        found = [_shorten(decode(Record, line)) for line in lines]
        if len(found) >= sum(store.recorded(grid)):
            return sorted(found, key=lambda one: one.index)
    return [_shorten(one) for one in store.records(grid)]


def _shorten(record: Record) -> Record:
    return replace(record, reason=record.reason[:MOST_REASON])


def _read_parameters(store: GridStore, grid: str, indices: Sequence[int]) -> dict[int, Mapping[str, Any]]:
    found = dict[int, Mapping[str, Any]]()
    for line in store.lines(grid, sorted(set(indices))):
        parameters = line.source.get("hyperparameters", {})
        if not isinstance(parameters, dict):
            raise Garbled(f"the hyperparameters of line {line.index} are no object")
        found[line.index] = parameters
    return found
