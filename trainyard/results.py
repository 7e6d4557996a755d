"""Tables of what came of a grid, and of a search."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from aws.grids import GridStore
from aws.s3 import Bucket
from contract.codec import Garbled, decode
from contract.grid import Grid, GridPrefix, Record
from contract.search import SearchPrefix
from grids.policy import Totals
from pages.words import count, number, usd
from trainyard.deployment import Deployment
from trainyard.printer import Printer
from trainyard.story import parse_object

MOST_ROWS = 500
"""Lines and trials that a table shows; results.csv and trials.csv have all."""
MOST_LINES = 1_000_000
"""Lines of a grid, at most: far more than a plan has."""
SHOWN = ("trial", "status", "value", "region", "seconds", "cost_usd")
"""Columns of trials.csv that the table has beside the parameters."""
PARAMETER = "hp."


class Shown(Protocol):
    """A table that was read, and can be printed."""

    def show(self, printer: Printer) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GridResults:
    """The lines of a grid that have ended."""

    lines: int | None
    """Lines of the whole grid; None where its plan is not known."""
    records: Sequence[Record]
    strange: Sequence[str]
    """What is wrong with each record that another version wrote."""
    table: str
    """Address of the table that has all columns."""

    def show(self, printer: Printer) -> None:
        """Prints them, and why others did not complete."""
        for one in self.records:
            printer.document(asdict(one))
        if self.strange:
            say_strange(
                f"{count(len(self.strange), 'record')} written by another version, and not shown: {self.strange[0]}",
                printer,
            )
        if self.records and not printer.as_json:
            self._print(printer)

    def _print(self, printer: Printer) -> None:
        printer.table(
            ["#", "line", "region", "outcome", "metrics", "cost $", "billable s"],
            [
                (
                    one.index,
                    one.line,
                    one.region,
                    one.outcome.value,
                    ", ".join(
                        [
                            *(f"{metric} {number(value)}" for metric, value in one.metrics.items()),
                            *(f"{metric}: {problem}" for metric, problem in one.metric_problems.items()),
                        ]
                    ),
                    "" if one.cost_usd is None else f"{one.cost_usd:.4f}",
                    "" if one.billable_seconds is None else f"{one.billable_seconds:.0f}",
                )
                for one in self.records[:MOST_ROWS]
            ],
        )
        totals = Totals(
            lines=len(self.records) if self.lines is None else self.lines,
            cost_at_most_usd=None,
        )
        for one in self.records:
            totals.add(one)
        for line in list_reasons(totals):
            printer.say(line)
        outcomes = ", ".join(f"{amount} {outcome}" for outcome, amount in totals.outcomes.items())
        printer.say(
            f"{len(self.records)} of {totals.lines} lines have ended: {outcomes}; they cost {usd(totals.cost_usd)}"
        )
        if len(self.records) > MOST_ROWS:
            printer.say(f"The table shows the first {MOST_ROWS}.")
        printer.say(f"all columns: {self.table}")


def read_plan(store: GridStore, name: str) -> Grid | None:
    """Returns the grid as Plan wrote it; None where nothing was planned. Raises Garbled."""
    grid = store.grid(name)
    if grid is not None and not 0 <= grid.lines <= MOST_LINES:
        raise Garbled(f"Grid.lines is {grid.lines}; allowed: 0 to {MOST_LINES}")
    return grid


def read_results(deployment: Deployment, name: str) -> GridResults | None:
    """Returns the results of a grid that has ended, the records of another; None where there are none."""
    store, prefix = GridStore(deployment.home_bucket), GridPrefix(name)
    body = store.get(prefix.results_jsonl)
    try:
        grid = read_plan(store, name)
    except Garbled as problem:
        grid, strange = None, [str(problem)]
    else:
        strange = []
    bodies: Iterable[bytes] = body.splitlines() if body is not None else store.record_bodies(grid) if grid else ()
    records = []
    for one in bodies:
        try:
            records.append(decode(Record, one))
        except Garbled as problem:
            strange.append(str(problem))
    if not records and not strange:
        return None
    table = f"s3://{deployment.home_bucket}/{prefix.results_csv}"
    return GridResults(lines=grid.lines if grid else None, records=records, strange=strange, table=table)


def say_strange(what: str, printer: Printer) -> None:
    """Says which documents another version wrote; for a program it is an error among the others."""
    printer.document({"error": Garbled.__name__, "cause": what})
    printer.complain(what)


def list_reasons(totals: Totals) -> list[str]:
    """Returns a line for each reason for which lines did not complete: as a column, a table of 80 columns would lose it."""
    return [
        f"{count(amount, 'line')}, the first is line {totals.examples[reason]}: {reason}"
        for reason, amount in totals.reasons.most_common()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTrials:
    """The trials of a search that has ended."""

    rows: Sequence[dict[str, Any]]
    """Those of trials.csv."""
    best: str
    """The best one, as JSON; empty where there is none."""
    strange: str
    """What of trials.csv cannot be read; empty where all can."""
    table: str
    """Address of trials.csv."""

    def show(self, printer: Printer) -> None:
        """Prints them, and the best one."""
        for row in self.rows:
            printer.document(row)
        if self.strange:
            say_strange(self.strange, printer)
        if printer.as_json:
            return
        columns = [one for one in (self.rows[0] if self.rows else {}) if one and one.startswith(PARAMETER)]
        shown = [one for one in SHOWN if self.rows and one in self.rows[0]]
        table = [[row.get(one) for one in (*shown, *columns)] for row in self.rows[:MOST_ROWS]]
        printer.table([*shown, *(one.removeprefix(PARAMETER) for one in columns)], table)
        for row in self.rows[:MOST_ROWS]:
            if row.get("reason"):
                printer.say(f"trial {row.get('trial', '?')}: {row['reason']}")
        if self.best:
            printer.say(f"best: {self.best}")
        printer.say(f"all columns: {self.table}")


def read_trials(deployment: Deployment, name: str) -> SearchTrials | None:
    """Returns the trials of a search that has ended, and its best one; None for one that has left none."""
    home, prefix = Bucket(deployment.home_bucket, deployment.region), SearchPrefix(name)
    body = home.get(prefix.trials)
    if body is None:
        return None
    rows, strange = list[dict[str, Any]](), ""
    try:
        rows += csv.DictReader(io.StringIO(body.decode(errors="replace"), newline=""))
    except csv.Error as problem:
        strange = (
            f"the trials were written by another version, and are not shown: {prefix.trials} is not CSV: {problem}"
        )
    whole = [one for one in rows if None not in one]
    if len(whole) < len(rows):
        longer = count(len(rows) - len(whole), "trial")
        strange = (
            strange or f"{longer} written by another version, and not shown: more cells than columns in {prefix.trials}"
        )
    best = parse_object((home.get(prefix.best) or b"").decode(errors="replace"))
    return SearchTrials(
        rows=whole,
        strange=strange,
        best=json.dumps(best, ensure_ascii=False) if best else "",
        table=f"s3://{deployment.home_bucket}/{prefix.trials}",
    )
