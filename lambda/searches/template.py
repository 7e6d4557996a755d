"""Reads the lines that a search's template makes as Plan reads those of a grid, and says what is wrong in the words of the search."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from contract.environments import GridEnvironment, JobChecksEnvironment
from contract.request_rules import NO_RULES, RequestRules
from contract.search import Search, name_round
from grid_plan import request as grid_request
from grid_plan.line_jobs import FactsSource
from grid_plan.planning import Checked, Planner
from grid_plan.problems import Report
from grid_plan.training_arguments import GridRun
from refusals.wording import plain
from searches.request import TEMPLATE, SearchRequest, read, write_line

ANY_CAP = 1e12
"""Dollars: with a cap Plan refuses what has no price."""
ANY_NAME = "search"
"""Stands for the name of the execution, which a person gives at the start."""
FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*[.:]")
"""How a problem begins that belongs to a field."""


class TemplateLines:
    """Lines of trials, of a search that trains under this name."""

    def __init__(
        self,
        search: Search,
        wanted: SearchRequest,
        env: GridEnvironment,
        rules: RequestRules = NO_RULES,
        checks: JobChecksEnvironment | None = None,
    ) -> None:
        self._search, self._wanted = search, wanted
        self._env, self._rules, self._checks = env, rules, checks

    def write(self, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Returns a line for each place, with these parameters."""
        return [write_line(self._wanted, number, values) for number in range(len(self._wanted.places or [{}]))]

    def check(self, lines: Sequence[Mapping[str, Any]], cap: float | None) -> Checked:
        """Has Plan's first pass read the lines. With a cap every line must have a price; whether the cap pays for it is not asked here."""
        planner, body, problems = self._prepare(lines, cap)
        checked = planner.check(body)
        checked.report.general[:0] = problems
        return checked

    def check_form(self, lines: Sequence[Mapping[str, Any]], source: FactsSource | None = None) -> Checked:
        """Has Plan read the lines without AWS; `source` as for Plan's own."""
        planner, body, problems = self._prepare(lines, None)
        checked = planner.check_form(body, source)
        checked.report.general[:0] = problems
        return checked

    def _prepare(self, lines: Sequence[Mapping[str, Any]], cap: float | None) -> tuple[Planner, io.BytesIO, list[str]]:
        search, owner = self._search, self._wanted.owner
        given = {"manifest": "s3://any/any", "owner": owner, "allow_duplicates": True}
        given |= {"max_cost_usd": ANY_CAP} if cap else {}
        request, defaults, problems = grid_request.read(given, self._env.limits)
        run = GridRun(
            grid=name_round(search.id, 1), execution=search.execution, started_at=search.started_at, owner=owner
        )
        body = "".join(json.dumps(line) + "\n" for line in lines).encode()
        return Planner(request, run, self._env, defaults, self._rules, self._checks), io.BytesIO(body), problems

    def read_report(self, report: Report) -> list[str]:
        """Words a grid's problems as those of the template, or of the places that have the field."""
        problems, places = list(report.general), self._wanted.places or [{}]
        for text, where in report.by_text.items():
            found = sorted({(line - 1) % len(places) for line in where.first})
            own = [f"places.{one}.{text}" for one in found if _is_of(text, places[one])]
            if len(own) == len(found):
                problems += own
            elif FIELD.match(text) or _is_of(text, self._wanted.template):
                problems += [f"{TEMPLATE}.{text}", *own]
            elif self._wanted.places:
                problems += [f"{TEMPLATE} with places.{one}: {text}" for one in found]
            else:
                problems.append(f"{TEMPLATE}: {text}")
        return problems


def _is_of(text: str, fields: Mapping[str, Any]) -> bool:
    """Whether a problem begins with the name of one of the fields, as a refusal writes it."""
    return text.startswith(tuple(f"{plain(name)}{end}" for name in fields for end in ".:"))


def list_form_problems(
    raw: Mapping[str, Any],
    env: GridEnvironment,
    rules: RequestRules = NO_RULES,
    checks: JobChecksEnvironment | None = None,
    source: FactsSource | None = None,
) -> list[str]:
    """Lists what is wrong with the lines of an input, as far as it can be known without AWS and without a search that it resumes."""
    wanted, wrong, _ = read(raw)
    if raw.get("resume") is not None or {"template", "places"} & wrong:
        return []
    if unwritable := list_unwritable([wanted.template, wanted.places]):
        return unwritable
    execution = f"{env.machine.replace(':stateMachine:', ':execution:')}:{ANY_NAME}"
    search = Search(id=ANY_NAME, deployment=env.deployment, execution=execution, started_at="", given={})
    lines = TemplateLines(search, wanted, env, rules, checks)
    values = {name: (one.float_ or one.int_ or one.choice or [0])[0] for name, one in wanted.search.items()}
    return lines.read_report(lines.check_form(lines.write(values), source).report)


def list_unwritable(lines: object) -> list[str]:
    """Says why what lines are made of cannot be kept: JSON may hold half of a surrogate pair, and UTF-8 may not."""
    try:
        json.dumps(lines, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return ["template: is not valid Unicode (it holds half of a surrogate pair); allowed: whole characters"]
    except RecursionError:
        return ["template: holds values that are nested too deeply; allowed: fewer levels"]
    return []
