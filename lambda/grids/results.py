"""The files of a grid: results as CSV and JSON Lines, and a manifest of the lines that did not complete. Streams."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from tempfile import SpooledTemporaryFile
from typing import IO

from aws.grids import GridStore
from contract.grid import Grid, GridPrefix, LineOutcome
from grids.policy import COLUMNS, Totals, row

SPOOLED = 8 * 1024**2
"""Bytes of a file that are held in memory; the rest lies on the function's disk."""


def write(store: GridStore, grid: Grid) -> Totals:
    """Reads every record and writes the three files, all lines in the order of the plan. A line without a record is among those
    that did not complete."""
    prefix, totals = GridPrefix(grid.id), Totals(lines=grid.lines, cost_at_most_usd=grid.cost_at_most_usd)
    again = bytearray(grid.lines)
    with ExitStack() as stack:
        spools: list[IO[bytes]] = [stack.enter_context(SpooledTemporaryFile(SPOOLED)) for _ in range(3)]
        table, lines, failed = (_text(spool) for spool in spools)
        rows = csv.writer(table)
        rows.writerow(COLUMNS)
        last = -1
        for record in store.records(grid):
            totals.add(record)
            rows.writerow(row(record, _json(record.metrics)))
            lines.write(_json(asdict(record)) + "\n")
            for index in range(last + 1, record.index):
                again[index] = 1
            again[record.index] = record.outcome is not LineOutcome.COMPLETED
            last = record.index
        for index in range(last + 1, grid.lines):
            again[index] = 1
        totals.unfinished = grid.lines - sum(totals.outcomes.values())
        for line in store.lines(grid.id, _marked(again)):
            failed.write(_json(line.source) + "\n")
        for spool, text, (key, kind) in zip(spools, (table, lines, failed), _files(prefix), strict=True):
            text.flush()
            spool.seek(0)
            store.put_file(key, spool, kind)
            text.detach()
    return totals


def _marked(marks: bytearray) -> Iterator[int]:
    return (index for index, marked in enumerate(marks) if marked)


def _files(prefix: GridPrefix) -> list[tuple[str, str]]:
    """Key and type."""
    lines = "application/x-ndjson"
    return [(prefix.results_csv, "text/csv; charset=utf-8"), (prefix.results_jsonl, lines), (prefix.failed, lines)]


def _text(spool: IO[bytes]) -> io.TextIOWrapper:
    return io.TextIOWrapper(spool, encoding="utf-8", newline="")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
