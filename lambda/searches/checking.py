"""Checks everything about a search before its first round, and says all that is wrong with it at once."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from contract.environments import GridEnvironment
from contract.grid import Backend
from contract.search import NAME_WORDS, PATTERN, Search, name_round
from grid_plan import request as grid_request
from grid_plan.cluster_lines import is_cluster_line
from grid_plan.obstacles import list_closed, list_missing
from grid_plan.planning import Planner
from grid_plan.problems import Report
from grid_plan.training_arguments import GridRun
from refusals.wording import plain
from searches import study
from searches.earlier import UnusableSearch, read_earlier, resume, warm
from searches.policy import floor_cents
from searches.request import RESUMED, TEMPLATE, Sampler, SearchRequest, read, write_line
from searches.store import SearchStore

METRIC = "metric"
"""What the metric of a line on clusters of our own is called."""


@dataclass(frozen=True, slots=True)
class CheckedSearch:
    """What a search begins with, and what is wrong with it."""

    search: Search
    wanted: SearchRequest
    problems: list[str]


def check(raw: object, execution: Mapping[str, str], env: GridEnvironment, store: SearchStore) -> CheckedSearch:
    """Looks everything up, changes nothing. Raises ClientError or BotoCoreError where AWS does not answer."""
    search = Search(
        id=execution["name"],
        deployment=env.deployment,
        execution=execution["arn"],
        started_at=execution["started_at"],
        given={},
    )
    problems = [*list_closed(env)]
    if not PATTERN.fullmatch(search.id):
        problems.append(f"name: the execution is called {plain(search.id)}; allowed: {NAME_WORDS}")
    whole, base, unusable = _merge(raw, store, env)
    wanted, wrong, found = read(whole)
    problems += unusable
    if base is None and isinstance(raw, Mapping) and raw.get("resume") is not None:
        # What a search that cannot be resumed would have brought along is not missing too.
        found = [one for one in found if not one.partition(": ")[2].startswith("is missing;")]
    problems += found
    search = replace(
        base or search, id=search.id, execution=search.execution, started_at=search.started_at, given=whole
    )
    if base is None:
        search = replace(search, first=tuple(wanted.begin_with))
        search, found = _warm(search, wanted, store, wrong)
        problems += found
    problems += _list_misfits(wanted, wrong) + _list_limits(wanted, wrong, env) + _list_metrics(wanted, wrong)
    if "template" not in wrong and "places" not in wrong:
        problems += _list_template(search, wanted, wrong, env)
    problems += list_missing(env)
    return CheckedSearch(search, wanted, list(dict.fromkeys(problems)))


def _merge(raw: object, store: SearchStore, env: GridEnvironment) -> tuple[Any, Search | None, list[str]]:
    """Returns the input; of a search that resumes another one, that one's with the fields that are given anew."""
    name = raw.get("resume") if isinstance(raw, Mapping) else None
    if not isinstance(raw, Mapping) or not isinstance(name, str) or not PATTERN.fullmatch(name):
        return raw, None, []
    others = [one for one, value in raw.items() if one not in ("resume", *RESUMED) and value is not None]
    problems = [
        f"{plain(str(one))}: cannot change in a search that goes on; allowed: left out beside resume" for one in others
    ]
    try:
        old = read_earlier(store, "resume", name)
        anew = {one: value for one, value in raw.items() if value is not None or one in RESUMED}
        return {**old.search.given, **anew}, resume(store, env, old), problems
    except UnusableSearch as unusable:
        return raw, None, [*problems, str(unusable)]


def _warm(search: Search, wanted: SearchRequest, store: SearchStore, wrong: frozenset[str]) -> tuple[Search, list[str]]:
    if wanted.warm_start is None or {"search", "objective"} & wrong:
        return search, []
    try:
        trials, warnings = warm(wanted, read_earlier(store, "warm_start", wanted.warm_start))
    except UnusableSearch as unusable:
        return search, [str(unusable)]
    return replace(search, earlier=trials, warnings=tuple(warnings)), []


def _list_misfits(wanted: SearchRequest, wrong: frozenset[str]) -> list[str]:
    if "search" in wrong:
        return []
    every = ((place, study.list_misfits(wanted, one)) for place, one in enumerate(wanted.begin_with))
    return [f"begin_with.{place}.{problem}" for place, found in every for problem in found]


def _list_limits(wanted: SearchRequest, wrong: frozenset[str], env: GridEnvironment) -> list[str]:
    most = min(env.limits.max_lines, env.limits.max_concurrent)
    if "parallel" in wrong or wanted.parallel <= most:
        return []
    what = "grid.limits.max_lines and max_concurrent in cdk.json"
    return [f"parallel: {wanted.parallel:,} is too large; allowed: a whole number from 1 to {most:,} ({what})"]


def _list_metrics(wanted: SearchRequest, wrong: frozenset[str]) -> list[str]:
    """Each trial must report the objective: a training of SageMaker by a metric of its line, a job by its own."""
    if {"objective", "template", "places"} & wrong:
        return []
    metric, problems = wanted.objective.metric, list[str]()
    for place, turn in enumerate(wanted.places or [{}]):
        line = {**wanted.template, **turn}
        if is_cluster_line(line, {}):
            if metric != METRIC:
                problems.append(
                    f"objective.metric: {plain(metric)} is no metric of a job; allowed: {METRIC}, the one in PROGRESS_FILE, with the "
                    f"backend {Backend.EC2.value}"
                )
            continue
        defined = line.get("metrics")
        if not isinstance(defined, Mapping) or metric not in defined:
            has = ", ".join(map(plain, map(str, defined))) if isinstance(defined, Mapping) and defined else "none"
            where = f"places.{place}.metrics" if turn.get("metrics") is not None else f"{TEMPLATE}.metrics"
            problems.append(
                f"objective.metric: {plain(metric)} is not defined by {where}, which define {has}; allowed: one of them, or its "
                f'regular expression in {where}, as in {{"{plain(metric)}": "{plain(metric)}=([0-9.]+)"}}'
            )
    return problems


def _list_template(search: Search, wanted: SearchRequest, wrong: frozenset[str], env: GridEnvironment) -> list[str]:
    """Has the grid's own check read the lines of the first round, and a line for each place of later ones."""
    untold = max(wanted.trials - sum(one.number >= 0 for one in search.earlier), 1)
    count = min(wanted.parallel, untold, env.limits.max_lines)
    values: Sequence[Mapping[str, Any]] = [{}] * max(count, len(wanted.places or ()))
    if "search" not in wrong and wanted.search:
        one = wanted.model_copy(update={"sampler": Sampler.RANDOM})  # the sampler grid may lack its steps
        values = [study.ask(one, (), (), number=0, count=1)[0]] * len(values)
    lines = [write_line(wanted, number, one) for number, one in enumerate(values)]
    cap = wanted.max_cost_usd if not {"max_cost_usd", "trials", "parallel"} & wrong else None
    left = None if cap is None else max(floor_cents(cap - search.spent_usd), 0.01)
    problems = _read_report(wanted, _plan(search, wanted, lines[:count], left, env))
    if cap is not None and search.spent_usd:
        spent = f"max_cost_usd: {search.spent_usd:,.2f} of {cap:,.2f} are spent, and "
        problems = [re.sub("^max_cost_usd: ", spent, one) for one in problems]
    others = lines[count:]
    return problems + (_read_report(wanted, _plan(search, wanted, others, None, env), count) if others else [])


def _plan(
    search: Search, wanted: SearchRequest, lines: Sequence[Mapping[str, Any]], cap: float | None, env: GridEnvironment
) -> Report:
    given = {"manifest": "s3://any/any", "owner": wanted.owner, "allow_duplicates": True, "max_cost_usd": cap}
    request, defaults, problems = grid_request.read(
        {name: one for name, one in given.items() if one is not None}, env.limits
    )
    run = GridRun(
        grid=name_round(search.id, 1), execution=search.execution, started_at=search.started_at, owner=wanted.owner
    )
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    report = Planner(request, run, env, defaults).check(io.BytesIO(body)).report
    report.general[:0] = problems
    return report


def _read_report(wanted: SearchRequest, report: Report, first: int = 0) -> list[str]:
    """Words a grid's problems as those of the template, or of the places that have the field."""
    problems, places = list(report.general), wanted.places or [{}]
    for text, where in report.by_text.items():
        field = re.split("[.:]", text)[0]
        found = sorted({(first + line - 1) % len(places) for line in where.first})
        own = [f"places.{one}.{text}" for one in found if field in places[one]]
        problems += own if len(own) == len(found) else [f"{TEMPLATE}.{text}", *own]
    return problems
