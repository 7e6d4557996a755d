"""Writes the page of a grid: what came of its lines, why, what they cost, and what their metrics have to do with their hyperparameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from contract.grid import GridPrefix, LineOutcome, Record
from contract.links import Console
from grids.policy import Totals
from pages import words
from pages.charts import Chart, percent
from pages.document import keep_links, render
from pages.facts import GridFacts
from pages.outcomes import judge_run
from pages.scatter import draw_parameters

MOST_ROWS, MOST_METRICS, MOST_CHARTS, MOST_REGIONS = 500, 3, 8, 40
WITHOUT = "without a record"
KINDS = {**{one.value: one.value for one in LineOutcome}, WITHOUT: "none"}
"""What becomes of a line, with the class by which it is drawn."""


def write_grid(facts: GridFacts) -> bytes:
    """Returns the page of a grid as one file of HTML."""
    totals = _sum_up(facts)
    completed, lines = totals["completed"], totals["lines"]
    said = f"{completed:,} of {words.count(lines, 'line')} completed"
    left = lines - sum(totals["outcomes"].values())
    outcome = judge_run(
        facts.status,
        facts.report,
        busy=f"{said}; {left:,} have not ended.",
        done=f"{said}.",
        following=_choose_next(facts, totals),
    )
    if outcome.tone == "good" and completed < lines:
        outcome = replace(outcome, word=f"ended, {lines - completed:,} not completed", tone="busy")
    rows = _choose_rows(facts.records)
    names = _name_metrics(facts.records)
    return render(
        "grid.html",
        facts=facts,
        outcome=outcome,
        title=f"grid {facts.name}: {outcome.word}",
        tiles=_list_tiles(facts, totals),
        links=keep_links(lambda: _list_links(facts)),
        kinds=list(KINDS.items()),
        regions=_count_regions(facts, totals),
        failures=words.entries_of(totals, "failures"),
        charts=_draw_charts(facts, names),
        metrics=names,
        rows=[_show(one, names) for one in rows],
        all_rows=len(facts.records),
        results=f"s3://{facts.bucket}/{GridPrefix(facts.name).results_csv}" if facts.bucket else "results.csv",
    )


def _choose_next(facts: GridFacts, totals: Mapping[str, Any]) -> str:
    if totals["completed"] >= totals["lines"]:
        return "Open results.csv: it has every line with its metrics."
    failed = f"s3://{facts.bucket}/{GridPrefix(facts.name).failed}" if facts.bucket else "failed.jsonl"
    return f"Read why lines did not complete, below, and correct it. Then start {failed} as a grid of another name."


def _sum_up(facts: GridFacts) -> dict[str, Any]:
    """Returns the totals of the records; those of the report where there is no record to be read."""
    planned = facts.grid.lines if facts.grid else 0
    totals = Totals(lines=planned, cost_at_most_usd=facts.grid.cost_at_most_usd if facts.grid else None)
    for one in facts.records:
        totals.add(one)
    found = totals.to_report() | {"lines": max(planned, len(facts.records))}
    known = facts.report or {}
    if facts.records or not known:
        return found
    names = ("lines", "completed", "unpriced_lines", "cost_usd", "billable_seconds")
    numbers = {name: words.finite(known.get(name)) for name in names}
    counts = {name: int(words.finite(one) or 0) for name, one in words.entry_of(known, "outcomes").items()}
    whole = {name: int(one) if name in names[:3] else one for name, one in numbers.items() if one is not None}
    return found | whole | {"outcomes": counts, "failures": known.get("failures"), "regions": known.get("regions")}


def _list_tiles(facts: GridFacts, totals: Mapping[str, Any]) -> list[tuple[str, str]]:
    began = facts.status.started_at if facts.status else None
    ended = facts.status.ended_at if facts.status else None
    planned = facts.grid.cost_at_most_usd if facts.grid else None
    cost = words.usd(totals["cost_usd"])
    unpriced = (
        f", and {words.count(totals['unpriced_lines'], 'line')} without a price" if totals["unpriced_lines"] else ""
    )
    return [
        ("lines", f"{totals['lines']:,}"),
        ("completed", f"{totals['completed']:,}"),
        ("cost so far" if facts.status and facts.status.runs else "cost", f"{cost}{unpriced}"),
        ("planned cost at most", words.usd(planned)),
        ("hours of trainings", words.number(round((words.finite(totals["billable_seconds"]) or 0.0) / 3600, 2))),
        *([("lasted", words.duration((ended or facts.now) - began))] if began else []),
    ]


def _list_links(facts: GridFacts) -> list[tuple[str, str]]:
    if facts.grid is None:
        return []
    prefix, parts = GridPrefix(facts.name), facts.grid.execution.split(":")
    home = Console(parts[1], parts[3])
    files = {"results.csv": prefix.results_csv, "failed.jsonl": prefix.failed, "report.json": prefix.report}
    written = files if facts.report is not None and facts.bucket else {}
    return [
        ("Execution", home.execution(facts.grid.execution)),
        *((name, home.object(facts.bucket, key)) for name, key in written.items()),
    ]


def _count_regions(facts: GridFacts, totals: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns, for all regions together and for each, how many lines came to what."""
    counts = {name: Counter(_read_counts(one)) for name, one in words.entry_of(totals, "regions").items()}
    for region, lines in (facts.grid.regions if facts.grid else {}).items():
        found = counts.setdefault(region, Counter())
        found[WITHOUT] = max(0, lines - sum(found.values()))
    every = Counter[str]()
    for found in counts.values():
        every.update(found)
    shown = [("All", every), *sorted(counts.items())] if len(counts) > 1 else sorted(counts.items())
    return [_show_region(region, found) for region, found in shown[:MOST_REGIONS]]


def _read_counts(counts: object) -> dict[str, int]:
    return {name: int(words.finite(one) or 0) for name, one in counts.items()} if isinstance(counts, Mapping) else {}


def _show_region(region: str, counts: Counter[str]) -> dict[str, Any]:
    whole, at, bars = sum(counts.values()), 0, list[dict[str, str]]()
    for name, kind in KINDS.items():
        if counts[name]:
            share = {"at": percent(at / whole), "width": percent(counts[name] / whole)}
            bars.append({"kind": kind, "words": f"{name}: {counts[name]:,}", **share})
            at += counts[name]
    return {"region": region, "lines": whole, "counts": [counts[name] for name in KINDS], "bars": bars}


def _name_metrics(records: Sequence[Record]) -> list[str]:
    """Returns the names of the metrics that most lines have."""
    counts = Counter(name for one in records for name in one.metrics)
    return [name for name, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_METRICS]]


def _draw_charts(facts: GridFacts, names: Sequence[str]) -> list[Chart]:
    charts = list[Chart]()
    for number, name in enumerate(names):
        known = [(facts.parameters.get(one.index, {}), words.finite(one.metrics.get(name))) for one in facts.records]
        pairs = [(parameters, value) for parameters, value in known if value is not None]
        charts += draw_parameters(pairs, name, f"metric-{number}")
    return charts[:MOST_CHARTS]


def _choose_rows(records: Sequence[Record]) -> list[Record]:
    """Returns at most MOST_ROWS, those first that did not complete."""
    return sorted(records, key=lambda one: (one.outcome is LineOutcome.COMPLETED, one.index))[:MOST_ROWS]


def _show(one: Record, names: Sequence[str]) -> dict[str, Any]:
    return {
        "line": one.line,
        "index": one.index,
        "outcome": one.outcome.value,
        "tone": "good" if one.outcome is LineOutcome.COMPLETED else "bad",
        "region": words.visible(one.region, 40),
        "training": words.visible(one.training, 80),
        "log": one.log,
        "metrics": [words.number(one.metrics[name]) if name in one.metrics else "–" for name in names],
        "seconds": words.duration(one.seconds) if one.seconds is not None else "–",
        "usd": words.usd(one.cost_usd),
        "reason": words.visible(one.explanation, 240),
    }
