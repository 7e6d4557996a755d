"""Writes the page of the faults of a rehearsal, from their table."""

from __future__ import annotations

from pathlib import Path

from rehearsal.faults import FAULTS, FaultKind

PAGE = Path(__file__).parent.parent / "docs" / "faults.md"
HEAD = """# The faults of a rehearsal

Written by `make docs`; edit the table in `rehearsal/faults.py` instead.

    python -m rehearsal --job examples/ddp_digits/job.json --code examples/ddp_digits --fault slow-boot:seconds=300 --fault events-dropped
    python -m rehearsal --manifest examples/grid/manifest.csv --input examples/grid/input.json --grid-data examples/grid/digits \\
      --image examples/grid/train --fault child-killed:line=all --fault sagemaker-throttled:seconds=120

`--fault NAME[:key=value,...]` may be given several times. Seconds are those of a real account: the rehearsal divides them by
its speed (10, a grid's 30). Those of a grid are `child-killed`, `create-response-lost`, `quota-reached`, `sagemaker-throttled`,
`spot-interrupted` (lines whose market is spot) and `task-retired`; those of nodes do nothing to it. What has the key `job` can be
for one job, or grid, among several (`Yard.faults` in tests). A moment (`at`) is `boot` (the first line of user data), `agent` (the
agent's first), a phase that the node reports (`preparing`, `waiting`, `training`, `saving`), or a step of the training.
"""


def pages() -> dict[Path, str]:
    return {PAGE: page()}


def page() -> str:
    """Returns docs/faults.md."""
    return "\n".join([HEAD, *(_section(name, kind) for name, kind in FAULTS.items())])


def _section(name: str, kind: FaultKind) -> str:
    keys = [f"- `{key}={one.default}`: {one.what} ({one.allowed})" for key, one in kind.keys.items()]
    return "\n".join(
        [f"## {name}\n", f"{_sentence(kind.what)}\n", *keys, *([""] if keys else []), f"Outcome: {kind.outcome}\n"]
    )


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
