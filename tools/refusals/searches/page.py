"""The table of refused searches: a test runs it against the function, and `make docs` makes a page of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools import markdown
from tools.markdown import plain
from tools.refusals.grids.yard import REGIONS
from tools.refusals.searches import inputs, lines, ranges
from tools.refusals.searches.row import Row
from tools.refusals.searches.yard import LEAST, TEMPLATE, execution

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "search-refusals.md"
WIDTH = 200
ROWS = (*ranges.ROWS, *lines.ROWS, *inputs.ROWS)
HEAD = """# What the Search machine refuses

<!-- Written by `make docs` from tools/refusals/searches/, which a test runs against the function. -->

A search that is wrong fails in *Ask* with the error `InvalidRequest`, before anything is written or started. The cause names everything
that is wrong with the input, with its template as a line of a manifest ([what the Grid machine refuses](grid-refusals.md)) and with its
places, a line a reason; beyond 16,000 characters the rest is counted, and the function's log has it. The examples come from a deployment
named `yard` in {regions} with the repositories
`images` and `grid`. Of an input the table has the fields that differ from the following one's, and of a template its fields that do; null
is a field that the template lacks.

```json
{least}
```

{count} refusals:

| what | input | answer |
|---|---|---|
"""


def pages() -> dict[Path, str]:
    return {PAGE: page()}


def page() -> str:
    """Returns the whole page."""
    head = HEAD.format(regions=", ".join(REGIONS), least=json.dumps(LEAST, indent=2), count=len(ROWS))
    rows = [f"| {plain(row.what)} | {_given(row)} | {'<br>'.join(map(plain, row.reasons()))} |" for row in ROWS]
    return head + "\n".join(rows) + "\n"


def _given(row: Row) -> str:
    if row.shown:
        return plain(row.shown)
    named = [f"named {row.run['name']}"] if row.run != execution() else []
    given = row.given
    if isinstance(given, dict) and isinstance(given.get("template"), dict) and "backend" not in given["template"]:
        given = {**given, "template": _changed(given["template"])}
    text = json.dumps(given, ensure_ascii=False)
    return ", ".join([*named, *([markdown.code(text, WIDTH)] if given or row.whole else [])])


def _changed(template: dict[str, Any]) -> dict[str, Any]:
    """Returns what a template has that the smallest search's has not; null for a field that it lacks."""
    return {one: template.get(one) for one in {**TEMPLATE, **template} if template.get(one) != TEMPLATE.get(one)}
