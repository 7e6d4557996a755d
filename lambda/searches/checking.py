"""Checks everything about a search before its first round, and says all that is wrong with it at once."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from contract.environments import GridEnvironment
from contract.grid import Backend
from contract.request_rules import NO_RULES, RequestRules
from contract.search import NAME_WORDS, PATTERN, Search, name_round
from grid_plan import request as grid_request
from grid_plan.cluster_lines import is_cluster_line
from grid_plan.obstacles import list_closed, list_missing
from grid_plan.planning import Checked, Planner
from grid_plan.problems import Report
from grid_plan.training_arguments import GridRun
from refusals.wording import plain
from searches import study
from searches.earlier import UnusableSearch, read_earlier, resume, warm
from searches.policy import floor_cents
from searches.request import RESUMED, TEMPLATE, Sampler, SearchRequest, read, write_line
from searches.store import SearchStore

ANY_CAP = 1e12
"""Dollars: with a cap Plan refuses what has no price."""
FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*[.:]")
"""How a problem begins that belongs to a field."""
METRIC = "metric"
"""What the metric of a line on clusters of our own is called."""


@dataclass(frozen=True, slots=True)
class CheckedSearch:
    """What a search begins with, and what is wrong with it."""

    search: Search
    wanted: SearchRequest
    problems: list[str]


def check(
    raw: object,
    execution: Mapping[str, str],
    env: GridEnvironment,
    store: SearchStore,
    rules: RequestRules = NO_RULES,
) -> CheckedSearch:
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
    problems += unusable + (unwritable := _list_unwritable([wanted.template, wanted.places]))
    if base is None and isinstance(raw, Mapping) and raw.get("resume") is not None:
        # What a search that cannot be resumed would have brought along is not missing too.
        found = [one for one in found if not one.partition(": ")[2].startswith("is missing;")]
    problems += found
    search = replace(
        base or search, id=search.id, execution=search.execution, started_at=search.started_at, given=whole
    )
    if base is None:
        search = replace(search, first=_write_first(wanted, wrong))
        search, found = _warm(search, wanted, store, wrong)
        problems += found
    elif wanted.max_cost_usd is not None and any(one.cost_usd is None for one in search.earlier):
        what = "what trials of the search that it resumes cost is not known"
        problems.append(f"max_cost_usd: {what}, so nothing can keep to it; allowed: left out, as there")
    problems += _list_misfits(wanted, wrong) + _list_limits(wanted, wrong, env) + _list_metrics(wanted, wrong)
    if not {"template", "places"} & wrong and not unwritable:
        search, found = _price(search, wanted, wrong, env, rules)
        problems += found
    problems += list_missing(env)
    return CheckedSearch(search, wanted, list(dict.fromkeys(problems)))


def _list_unwritable(lines: object) -> list[str]:
    """Says why what lines are made of cannot be kept: JSON may hold half of a surrogate pair, and UTF-8 may not."""
    try:
        json.dumps(lines, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return ["template: is not valid Unicode (it holds half of a surrogate pair); allowed: whole characters"]
    except RecursionError:
        return ["template: holds values that are nested too deeply; allowed: fewer levels"]
    return []


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
        anew = {one: value for one, value in raw.items() if value is not None}
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


def _write_first(wanted: SearchRequest, wrong: frozenset[str]) -> tuple[dict[str, Any], ...]:
    """Returns what a person wants to try first; empty where some of it is wrong."""
    if "search" in wrong or _list_misfits(wanted, wrong):
        return ()
    return tuple(study.write_values(wanted, one) for one in wanted.begin_with)


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


def _price(
    search: Search, wanted: SearchRequest, wrong: frozenset[str], env: GridEnvironment, rules: RequestRules
) -> tuple[Search, list[str]]:
    """Has the grid's own check read a line for each place. Returns the search with the most that a trial of each could cost, and what is
    wrong. A search that begins has to pay for its whole first round; one that goes on makes rounds that its rest pays for."""
    values: Mapping[str, Any] = {}
    if "search" not in wrong and wanted.search:
        one = wanted.model_copy(update={"sampler": Sampler.RANDOM})  # the sampler grid may lack its steps
        (values,) = study.ask(one, (), (), number=0, count=1)
    lines = [write_line(wanted, number, values) for number in range(len(wanted.places or [{}]))]
    cap = None if "max_cost_usd" in wrong else wanted.max_cost_usd
    problems = _read_report(wanted, _plan(search, wanted, lines, cap, env, rules).report)
    if problems or cap is None:
        return search, problems
    most = tuple(math.fsum(_plan(search, wanted, [line], cap, env, rules).costs) for line in lines)
    search = replace(search, most_usd=most)
    needed, cap = (
        math.fsum(most[number % len(most)] for number in range(min(wanted.parallel, wanted.trials))),
        floor_cents(cap),
    )
    if {"trials", "parallel"} & wrong or needed <= cap or any(one.number >= 0 for one in search.earlier):
        return search, []
    less = f"max_cost_usd: {cap:,.2f} is less than {needed:,.2f}, which the trials of the first round could cost until their time-outs"
    return search, [
        f"{less} at on-demand prices; allowed: a larger max_cost_usd, or fewer parallel, instances or hours"
    ]


def _plan(
    search: Search,
    wanted: SearchRequest,
    lines: Sequence[Mapping[str, Any]],
    cap: float | None,
    env: GridEnvironment,
    rules: RequestRules,
) -> Checked:
    """Has Plan's first pass read the lines. With a cap every line must have a price; whether the cap pays for it is not asked here."""
    given = {"manifest": "s3://any/any", "owner": wanted.owner, "allow_duplicates": True}
    request, defaults, problems = grid_request.read(given | ({"max_cost_usd": ANY_CAP} if cap else {}), env.limits)
    run = GridRun(
        grid=name_round(search.id, 1), execution=search.execution, started_at=search.started_at, owner=wanted.owner
    )
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    checked = Planner(request, run, env, defaults, rules).check(io.BytesIO(body))
    checked.report.general[:0] = problems
    return checked


def _read_report(wanted: SearchRequest, report: Report) -> list[str]:
    """Words a grid's problems as those of the template, or of the places that have the field."""
    problems, places = list(report.general), wanted.places or [{}]
    for text, where in report.by_text.items():
        found = sorted({(line - 1) % len(places) for line in where.first})
        own = [f"places.{one}.{text}" for one in found if _is_of(text, places[one])]
        if len(own) == len(found):
            problems += own
        elif FIELD.match(text) or _is_of(text, wanted.template):
            problems += [f"{TEMPLATE}.{text}", *own]
        elif wanted.places:
            problems += [f"{TEMPLATE} with places.{one}: {text}" for one in found]
        else:
            problems.append(f"{TEMPLATE}: {text}")
    return problems


def _is_of(text: str, fields: Mapping[str, Any]) -> bool:
    """Whether a problem begins with the name of one of the fields, as a refusal writes it."""
    return text.startswith(tuple(f"{plain(name)}{end}" for name in fields for end in ".:"))
