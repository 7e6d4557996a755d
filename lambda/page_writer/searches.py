"""Reads the facts of a search's page: what was asked for, its trials, and its report."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from aws.facts import Status
from contract.search import Search, SearchPrefix
from page_writer.reading import FactReader
from pages.facts import SearchFacts
from searches.policy import read_standing
from searches.request import read
from searches.store import SearchStore
from searches.table import write_table

MOST_TABLE = 64 * 1024**2
"""Bytes of trials.csv, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSources:
    """Where the facts of searches are."""

    deployment: str
    store: SearchStore


def read_search(
    sources: SearchSources, reader: FactReader, search: Search | None, name: str, status: Status, *, now: float
) -> SearchFacts:
    """Returns the facts; `search` is None where nothing was settled. What cannot be read is in `unread`, and nothing of it raises."""
    store, prefix = sources.store, SearchPrefix(name)
    described, report, trials = None, None, list[Mapping[str, str]]()
    if search is not None:
        described = reader.json(store, prefix.description)
        report = reader.json(store, prefix.report)
        trials = reader.attempt("trials", partial(_read_trials, store, search, is_reported=report is not None), [])
    return SearchFacts(
        name=name,
        deployment=sources.deployment,
        now=now,
        status=status,
        search=described,
        report=report,
        trials=tuple(trials),
        bucket=store.name,
        unread=tuple(reader.unread),
    )


def _read_trials(store: SearchStore, search: Search, *, is_reported: bool) -> list[Mapping[str, str]]:
    """Returns the rows of trials.csv; while the search runs, those that it would have now, of the rounds whose grids have ended."""
    body = store.get(SearchPrefix(search.id).trials, most=MOST_TABLE) if is_reported else None
    if body is None:
        body = _write_trials(store, search).encode()
    rows = csv.DictReader(io.StringIO(body.decode("utf-8", "replace"), newline=""))
    return [{name: value or "" for name, value in row.items() if isinstance(name, str)} for row in rows]


def _write_trials(store: SearchStore, search: Search) -> str:
    wanted = read(search.given)[0]
    rounds = store.rounds(search.id, store.count_rounds(search.id))
    ended = [one for one in rounds if any(one.records)]
    return write_table(wanted, read_standing(search, wanted, ended).own)
