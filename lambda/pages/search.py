"""Writes the page of a search: the best trial, how the search came to it, which hyperparameter counts, and all trials."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contract.links import Console
from contract.search import Direction, SearchPrefix
from pages import words
from pages.charts import Chart, choose_axis, draw_dots, draw_line, percent, short, thin
from pages.document import keep_links, render
from pages.facts import SearchFacts
from pages.outcomes import judge_run
from pages.scatter import draw_parameters, read_value

MOST_ROWS, MOST_FAILURES, MOST_SHARES, MOST_SHOWN = 500, 20, 30, 8
MOST_PARAMETERS = 100
"""Hyperparameters of the best trial, as many as SageMaker takes."""
MOST_LINE, MOST_LINES = 300, 120
"""Characters of a line of the best trial's line, and lines."""
_PARAMETER = "hp."
"""Begins the columns of hyperparameters in trials.csv."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """A row of trials.csv."""

    number: str
    outcome: str
    value: float | None
    parameters: Mapping[str, str]
    cells: Mapping[str, str]


def write_search(facts: SearchFacts) -> bytes:
    """Returns the page of a search as one file of HTML."""
    metric, direction = _read_objective(facts)
    trials = [_read_trial(one) for one in facts.trials]
    valued = [one for one in trials if one.value is not None]
    best = _find_best(valued, direction)
    said = f"{words.count(len(trials), 'trial')}, {len(valued):,} with a value"
    why = words.text_of(facts.report, "why")
    outcome = judge_run(
        facts.status,
        facts.report,
        busy=f"{said} so far.",
        done=f"{why or 'The search has ended.'} {said}.",
        following="Start the line of the best trial, below, in a grid to train it again, or open its artifact."
        if best
        else "",
    )
    rows = sorted(trials, key=lambda one: _rank(one, direction))[:MOST_ROWS]
    names = sorted({name for one in trials for name in one.parameters})
    pairs = [(one.parameters, one.value) for one in valued if one.value is not None]
    found = words.entry_of(facts.report, "best")
    return render(
        "search.html",
        facts=facts,
        outcome=outcome,
        title=f"search {facts.name}: {outcome.word}",
        tiles=_list_tiles(facts, trials, valued, best, metric, direction),
        links=keep_links(lambda: _list_links(facts)),
        metric=words.visible(metric, 60),
        best=best,
        best_parameters=list(best.parameters.items())[:MOST_PARAMETERS] if best else [],
        left_parameters=max(0, len(best.parameters) - MOST_PARAMETERS) if best else 0,
        best_line=_word_line(found.get("line")),
        artifact=words.text_of(found, "artifact"),
        progress=_draw_progress(trials, metric, direction),
        importance=_list_importance(facts.report),
        charts=draw_parameters(
            pairs, metric, "value", (best.parameters, best.value) if best and best.value is not None else None
        ),
        failures=_list_texts(facts.report, "failures")[:MOST_FAILURES],
        warnings=_list_texts(facts.search, "warnings")[:MOST_FAILURES],
        names=names[:MOST_SHOWN],
        left_names=max(0, len(names) - MOST_SHOWN),
        rows=[(one, [_shorten(one.parameters.get(name, "")) for name in names[:MOST_SHOWN]]) for one in rows],
        all_rows=len(trials),
        trials_file=f"s3://{facts.bucket}/{SearchPrefix(facts.name).trials}" if facts.bucket else "trials.csv",
    )


def _read_objective(facts: SearchFacts) -> tuple[str, Direction]:
    given = words.entry_of(words.entry_of(facts.search, "given"), "objective")
    found = words.entry_of(facts.report, "objective") or given
    wants_most = words.text_of(found, "direction") == Direction.MAXIMIZE.value
    return words.text_of(found, "metric") or "value", Direction.MAXIMIZE if wants_most else Direction.MINIMIZE


def _read_trial(row: Mapping[str, str]) -> TrialRow:
    """Reads a row; texts that begin as a spreadsheet's formula have a quote before them in the file."""
    try:
        value = words.finite(float(row.get("value") or "nan"))
    except ValueError:
        value = None
    cells = {name: str(text or "").removeprefix("'") for name, text in row.items() if name}
    return TrialRow(
        number=cells.get("trial", ""),
        outcome=cells.get("status", ""),
        value=value,
        parameters={name.removeprefix(_PARAMETER): text for name, text in cells.items() if name.startswith(_PARAMETER)},
        cells=cells,
    )


def _find_best(valued: Sequence[TrialRow], direction: Direction) -> TrialRow | None:
    """Returns the best trial; of equal ones the first."""
    return min(valued, key=lambda one: _rank(one, direction), default=None)


def _rank(one: TrialRow, direction: Direction) -> tuple[bool, float]:
    value = 0.0 if one.value is None else one.value
    return one.value is None, -value if direction is Direction.MAXIMIZE else value


def _list_tiles(
    facts: SearchFacts,
    trials: Sequence[TrialRow],
    valued: Sequence[TrialRow],
    best: TrialRow | None,
    metric: str,
    direction: Direction,
) -> list[tuple[str, str]]:
    report = facts.report or {}
    began = facts.status.started_at if facts.status else None
    ended = facts.status.ended_at if facts.status else None
    aim = "largest" if direction is Direction.MAXIMIZE else "smallest"
    cost = (
        report.get("cost_usd")
        if report
        else sum(words.finite(_to_number(one.cells.get("cost_usd"))) or 0.0 for one in trials)
    )
    cap = words.finite(report.get("max_cost_usd", words.entry_of(facts.search, "given").get("max_cost_usd")))
    return [
        ("best", words.number(best.value) if best else "no value yet"),
        ("objective", f"{aim} {words.visible(metric, 60)}"),
        ("trials", f"{len(trials):,}"),
        ("with a value", f"{len(valued):,}"),
        ("cost", words.usd(cost) + (f" of at most {words.usd(cap)}" if cap is not None else "")),
        *([("lasted", words.duration((ended or facts.now) - began))] if began else []),
    ]


def _to_number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


def _list_links(facts: SearchFacts) -> list[tuple[str, str]]:
    execution = words.text_of(facts.search, "execution")
    if not execution:
        return []
    prefix, parts = SearchPrefix(facts.name), execution.split(":")
    home = Console(parts[1], parts[3])
    files = {"trials.csv": prefix.trials, "best.json": prefix.best, "report.json": prefix.report}
    written = files if facts.report is not None and facts.bucket else {}
    return [
        ("Execution", home.execution(execution)),
        *((name, home.object(facts.bucket, key)) for name, key in written.items()),
    ]


def _draw_progress(trials: Sequence[TrialRow], metric: str, direction: Direction) -> Chart | None:
    """Draws the value of each trial, and the best so far; None where no trial has a value."""
    points = [(float(place), one.value) for place, one in enumerate(trials) if one.value is not None]
    if not points:
        return None
    across, up = choose_axis([0.0, float(len(trials) - 1)]), choose_axis(value for _, value in points)
    steps, best = list[tuple[float, float | None]](), points[0][1]
    for place, value in points:
        better = direction.is_better(value, best) or not steps
        steps += [(place, best), (place, value)] if better else []
        best = value if better else best
    steps.append((float(len(trials) - 1), best))
    drawn = thin(points)
    return Chart(
        key="progress",
        title=f"{words.visible(metric, 60)} of each trial, and the best so far",
        description=f"{words.count(len(points), 'trial')} with a value; the best is {words.number(best)}.",
        dots=draw_dots(drawn, across, up),
        best=draw_line(steps, across, up),
        x_ticks=across.list_ticks(lambda place: f"trial {words.number(round(words.finite(place) or 0))}"),
        y_ticks=up.list_ticks(short),
        columns=("Trials", "Best"),
        rows=tuple(
            (words.number(place), words.number(value)) for place, value in steps[1::2][-100:] if value is not None
        ),
        note=f"{len(drawn):,} of {len(points):,} are drawn." if len(drawn) < len(points) else "",
    )


def _shorten(text: str) -> str:
    """Returns a parameter for a table: a number without the digits after the sixth."""
    found = read_value(text)
    return words.visible(text, 30) if isinstance(found, str) else words.number(found)


def _list_importance(report: Mapping[str, Any] | None) -> list[tuple[str, str, str]]:
    """Returns name, share in words, and width of the bar of each hyperparameter, the largest first."""
    found = [(name, words.finite(share)) for name, share in words.entry_of(report, "importance").items()]
    known = sorted(((share, name) for name, share in found if share is not None), reverse=True)[:MOST_SHARES]
    return [(words.visible(name, 60), f"{100 * share:.1f} %", percent(share)) for share, name in known]


def _list_texts(document: Mapping[str, Any] | None, name: str) -> list[str]:
    found = (document or {}).get(name)
    return [words.visible(one, 300) for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _word_line(line: object) -> list[str]:
    """Returns the line of a manifest that trains the best trial again, as lines of JSON."""
    if not isinstance(line, Mapping):
        return []
    lines = json.dumps(line, indent=1, ensure_ascii=False, default=str).splitlines()
    left = len(lines) - MOST_LINES
    shown = [words.visible(one, MOST_LINE) for one in lines[:MOST_LINES]]
    return [*shown, f"(cut: {words.count(left, 'more line')} in best.json)"] if left > 0 else shown
