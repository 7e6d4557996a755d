"""Writes trials as a table: trials.csv, and the rows of a search's page."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from contract.search import Trial
from grids.policy import FORMULA
from searches.request import SearchRequest

COLUMNS = ("trial", "grid", "index", "status", "value")
"""Of trials.csv, before the parameters, which are called as in a manifest ..."""
MORE = ("region", "job", "seconds", "cost_usd", "reason", "model_artifact", "log")
"""... and after them."""


def write_table(wanted: SearchRequest, trials: Sequence[Trial]) -> str:
    """Writes a row for each trial, in the order in which they were asked."""
    text, names = io.StringIO(newline=""), sorted(wanted.search)
    rows = csv.writer(text)
    rows.writerow([*COLUMNS, *(f"hp.{name}" for name in names), *MORE])
    for one in trials:
        before = [one.number, one.grid, one.index, one.outcome, one.value]
        values = [one.parameters[name] for name in names]
        after = [one.region, one.training, one.seconds, one.cost_usd, one.reason, one.artifact, one.log]
        rows.writerow(map(_without_formula, [*before, *values, *after]))
    return text.getvalue()


def _without_formula(cell: object) -> object:
    """Returns the cell so that no spreadsheet computes it: choices, names and reasons are texts of others."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell
