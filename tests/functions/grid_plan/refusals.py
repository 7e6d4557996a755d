"""The table of grids that are refused: a test runs it against the function, `python -m tests.functions.grid_plan.refusals` makes a page."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.functions.grid_plan import refused_files, refused_inputs, refused_lines, refused_values
from tests.functions.grid_plan.account import REGIONS, execution
from tests.functions.grid_plan.row import Row

PAGE = Path(__file__).parents[3] / "docs" / "grid-refusals.md"
WIDTH = 150
ROWS = (*refused_files.ROWS, *refused_lines.ROWS, *refused_values.ROWS, *refused_inputs.ROWS)
HEAD = """# What the Grid machine refuses

<!-- Written by `python -m tests.functions.grid_plan.refusals` from tests/functions/grid_plan/refusals.py, which a test runs against the function. -->

A manifest that is wrong fails in *Plan* with the error `InvalidRequest`, before anything is written or started. The cause names everything
that is wrong with the input and with every line, a line a reason, equal reasons of several lines together; beyond
16,000 characters the rest is counted, and the function's log has it. The examples come from a deployment named `yard` in
{regions} with the repositories
`images` and `grid`; where nothing else is shown, the input is

```json
{least}
```

{count} refusals:

| what | manifest | input | answer |
|---|---|---|---|
"""


def page() -> str:
    """The whole page."""
    least = json.dumps(ROWS[0].input, indent=2)
    head = HEAD.format(regions=", ".join(REGIONS), least=least, count=len(ROWS))
    rows = [
        f"| {_text(row.what)} | {_manifest(row)} | {_given(row)} | {'<br>'.join(map(_text, row.reasons()))} |"
        for row in ROWS
    ]
    return head + "\n".join(rows) + "\n"


def _manifest(row: Row) -> str:
    if row.shown:
        return _text(row.shown)
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
    if not text:
        return ""
    return f"`` {text if len(text) <= WIDTH else f'{text[:WIDTH]}...'} ``".replace("|", "\\|")


def _text(text: str) -> str:
    """Markdown means nothing in it."""
    return re.sub(r"([\\`*\[\]<>|$]|(?<!\w)_|_(?!\w))", r"\\\1", text)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
