"""Writes the page of what Admit refuses, from the table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools import markdown
from tools.markdown import plain
from tools.refusals.jobs import LEAST, SECTIONS, Row, Section
from tools.refusals.jobs.table import FIELDS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "refusals.md"
WIDTH = 90
"""The most characters of a request that the page shows."""
HEAD = """# What is refused

<!-- Written by `make docs` from tools/refusals/jobs/, which a test runs against the function. -->

A request that is wrong fails in its first state, *Admit*, with the error `InvalidRequest`, before anything is created: no object, no
instance. The cause names everything that is wrong, a line a problem: the field, what is wrong, what is allowed. Where some fields are
good and others bad, the good ones are looked up all the same, so that one try tells all. [Every field](request.md), with its meaning and
its default.

The examples come from a deployment named `yard` in eu-central-1, whose home bucket is `yard-home` and whose `data_buckets` are
`datasets`, `partner` (another account's) and `retired` (there is none); at most {nodes} nodes and {hours} hours. Each is this request
with the fields shown put in:

```json
{least}
```
"""
TAIL = """
## Passed on unchanged

Shell characters, quotes, newlines, `{% %}` and text from right to left mean nothing to Trainyard. In `command`, in the values of
`environment`, in the keys of `code` and `data` (but for control characters there) they reach the training process, or S3, byte by byte,
and nothing executes them: no shell runs the command. (A `command` given as one text is split into words as a shell splits them. What a
shell would do more with it is refused, so that `&&` and `$NODE_RANK` do not reach the program by mistake; in a list, and in quotes, they
stand for themselves.) `owner` becomes a tag, so it takes what AWS takes in the value of a tag: letters and digits of any script, spaces,
and `_.:/=+@-`. A secret is named by its ARN, which has its own rules.

## What never reaches Admit

Step Functions itself refuses to start an execution whose input is larger than 262,144 bytes, or is not JSON (which has no `NaN` and no
`Infinity`), or whose name has more than 80 characters, spaces, or one of ``< > { } [ ] ? * " # % \\ ^ | ~ ` $ & , ; : /``. The input
travels to Admit inside a somewhat larger document: within the last few hundred bytes below that size the execution fails with
`States.DataLimitExceeded`, and nothing exists then either.
"""
TITLES = {"request": "The request as a whole", "name": "The name of the execution", "several": "Several at once"}


def pages() -> dict[Path, str]:
    return {PAGE: page()}


def page() -> str:
    """Returns the whole page."""
    rows = sum(len(section.rows) for section in SECTIONS)
    head = HEAD.format(nodes=16, hours=100, least=json.dumps(LEAST, indent=2))
    parts = [head, f"\n{rows} refusals:\n", *map(_section, SECTIONS), TAIL]
    return "".join(parts)


def _section(section: Section) -> str:
    title = TITLES.get(section.field, f"`{section.field}`")
    lines = [f"\n## {title}\n"]
    if section.allowed:
        lines.append(f"Allowed: {plain(section.allowed)}.")
    if section.entry:
        lines.append(f"Each entry: {plain(section.entry)}.")
    lines += ["", "| what | given | answer |", "|---|---|---|"]
    lines += [
        f"| {plain(row.what)} | {_given(row)} | {'<br>'.join(map(plain, _said(section, row)))} |"
        for row in section.rows
    ]
    return "\n".join(lines) + "\n"


def _said(section: Section, row: Row) -> list[str]:
    """Returns the answers, without what the section's head, or the one of the request, already says."""
    lines = section.lines(row)
    for known in (section.allowed, section.entry, FIELDS):
        lines = [line.removesuffix(f"; allowed: {known}") for line in lines]
    return lines


def _given(row: Row) -> str:
    if row.without:
        return f"without {', '.join(row.without)}"
    shown = [f"named {_code(json.dumps(row.name, ensure_ascii=False))}"] if row.name != "job-1" else []
    if row.whole or row.given:
        shown.append(_code(_json(row.given)))
    if row.closed:
        shown.append("a good request")
    return ", ".join(shown)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _code(text: str) -> str:
    text = "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)
    return markdown.code(text, WIDTH)
