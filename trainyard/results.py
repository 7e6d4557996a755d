"""Tables of what came of a grid, and of a search."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict

from aws.grids import GridStore
from aws.s3 import Bucket
from contract.codec import decode
from contract.grid import Grid, GridPrefix, Record
from contract.search import SearchPrefix
from grids.policy import Totals
from trainyard.deployment import Deployment
from trainyard.printer import Printer

MOST_ROWS = 500
"""Lines and trials that a table shows; results.csv and trials.csv have all."""
SHOWN = ("trial", "status", "value", "region", "seconds", "cost_usd")
"""Columns of trials.csv that the table has beside the parameters."""
PARAMETER = "hp."


def show_results(deployment: Deployment, name: str, printer: Printer) -> bool:
    """Prints the lines that have ended: the results of a grid that has ended, the records of another. Returns whether there are any."""
    store, prefix = GridStore(deployment.home_bucket), GridPrefix(name)
    body = store.get(prefix.results_jsonl)
    grid = store.grid(name)
    if body is not None:
        records = [decode(Record, line) for line in body.splitlines()]
    elif grid is not None:
        records = list(store.records(grid))
    else:
        return False
    for one in records:
        printer.document(json.loads(json.dumps(asdict(one), default=str)))
    if not printer.as_json and records:
        _print_results(deployment, grid, name, records, printer)
    return bool(records)


def _print_results(
    deployment: Deployment, grid: Grid | None, name: str, records: Sequence[Record], printer: Printer
) -> None:
    printer.table(
        ["#", "line", "region", "outcome", "metrics", "cost $", "billable s"],
        [
            (
                one.index,
                one.line,
                one.region,
                one.outcome.value,
                ", ".join(f"{metric} {value:.6g}" for metric, value in one.metrics.items()),
                "" if one.cost_usd is None else f"{one.cost_usd:.4f}",
                "" if one.billable_seconds is None else f"{one.billable_seconds:.0f}",
            )
            for one in records[:MOST_ROWS]
        ],
    )
    totals = Totals(lines=grid.lines if grid else len(records), cost_at_most_usd=None)
    for one in records:
        totals.add(one)
    for line in list_reasons(totals):
        printer.say(line)
    outcomes = ", ".join(f"{number} {outcome}" for outcome, number in totals.outcomes.items())
    printer.say(f"{len(records)} of {totals.lines} lines have ended: {outcomes}; they cost ${totals.cost_usd:.2f}")
    if len(records) > MOST_ROWS:
        printer.say(f"The table shows the first {MOST_ROWS}.")
    printer.say(f"all columns: s3://{deployment.home_bucket}/{GridPrefix(name).results_csv}")


def list_reasons(totals: Totals) -> list[str]:
    """Returns a line for each reason for which lines did not complete: as a column, a table of 80 columns would lose it."""
    return [
        f"{count} {'line' if count == 1 else 'lines'}, the first is line {totals.examples[reason]}: {reason}"
        for reason, count in totals.reasons.most_common()
    ]


def show_trials(deployment: Deployment, name: str, printer: Printer) -> None:
    """Prints the trials of a search that has ended, and its best one; nothing of one that has left none."""
    home, prefix = Bucket(deployment.home_bucket, deployment.region), SearchPrefix(name)
    body = home.get(prefix.trials)
    if body is None:
        return
    rows = list(csv.DictReader(io.StringIO(body.decode())))
    for row in rows:
        printer.document(row)
    if printer.as_json:
        return
    columns = [one for one in (rows[0] if rows else {}) if one.startswith(PARAMETER)]
    shown = [one for one in SHOWN if rows and one in rows[0]]
    table = [[row[one] for one in (*shown, *columns)] for row in rows[:MOST_ROWS]]
    printer.table([*shown, *(one.removeprefix(PARAMETER) for one in columns)], table)
    for row in rows[:MOST_ROWS]:
        if row.get("reason"):
            printer.say(f"trial {row.get('trial', '?')}: {row['reason']}")
    best = home.get(prefix.best)
    if best is not None:
        printer.say(f"best: {json.dumps(json.loads(best), ensure_ascii=False)}")
    printer.say(f"all columns: s3://{deployment.home_bucket}/{prefix.trials}")
