"""The table of refused grids: a test runs it against the function, and `make docs` makes a page of it."""

from __future__ import annotations

import json
from pathlib import Path

from tools import markdown
from tools.markdown import plain
from tools.refusals.grids import code, files, inputs, jobs, lines, values
from tools.refusals.grids.row import Row
from tools.refusals.grids.yard import REGIONS, execution

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "grid-refusals.md"
WIDTH = 150
ROWS = (*files.ROWS, *lines.ROWS, *code.ROWS, *values.ROWS, *jobs.ROWS, *inputs.ROWS)
HEAD = """# What the Grid machine refuses

<!-- Written by `make docs` from tools/refusals/grids/, which a test runs against the function. -->

A manifest that is wrong fails in *Plan* with the error `InvalidRequest`, before anything is written or started. The cause names everything
that is wrong with the input and with every line, a line a reason, equal reasons of several lines together; beyond
16,000 characters the rest is counted, and the function's log has it. The examples come from a deployment named `yard` in
{regions} with the repositories
`images` and `grid`, in which jobs run in {training}; where nothing else is shown, the input is

```json
{least}
```

{count} refusals:

| what | manifest | input | answer |
|---|---|---|---|
"""


def pages() -> dict[Path, str]:
    return {PAGE: page()}


def page() -> str:
    """Returns the whole page."""
    least = json.dumps(ROWS[0].input, indent=2)
    head = HEAD.format(regions=", ".join(REGIONS), training=jobs.TRAINING, least=least, count=len(ROWS))
    rows = [
        f"| {plain(row.what)} | {_manifest(row)} | {_given(row)} | {'<br>'.join(map(plain, row.reasons()))} |"
        for row in ROWS
    ]
    return head + "\n".join(rows) + "\n"


def _manifest(row: Row) -> str:
    if row.shown:
        return plain(row.shown)
    text = row.manifest if isinstance(row.manifest, str) else repr(row.manifest)[2:-1]
    return _code(
        "".join(
            one if one.isprintable() else f"\\x{ord(one):02x}" for one in text.replace("\n", "⏎").replace("\r", "␍")
        )
    )


def _given(row: Row) -> str:
    shown = [f"named {row.run['name'][:WIDTH]}"] if row.run != execution() else []
    shown += [f"without {', '.join(row.without)}"] if row.without else []
    shown += [_code(json.dumps(row.given, ensure_ascii=False))] if row.given or row.whole else []
    return ", ".join(shown)


def _code(text: str) -> str:
    return markdown.code(text, WIDTH) if text else ""
