"""Writes the page of the faults of a rehearsal, from their table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from pathlib import Path

from rehearsal.fault_keys import FaultKey, FaultKind
from rehearsal.faults import FAULTS
from rehearsal.scenario import MOMENT

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "faults.md"
EXAMPLE = ROOT / "rehearsal" / "scenarios" / "twice_lost.json"
HEAD = """# The faults of a rehearsal

Written by `make docs`; edit the table in `rehearsal/faults.py` instead.

    python -m rehearsal --job examples/ddp_digits/job.json --code examples/ddp_digits --fault slow-boot:seconds=300 --fault events-dropped
    python -m rehearsal --manifest examples/grid/manifest.csv --input examples/grid/input.json --grid-data examples/grid/digits \\
      --image examples/grid/train --fault child-killed:line=all --fault sagemaker-throttled:seconds=120

`--fault NAME[:key=value,...]` may be given several times. Seconds are those of a real account: the rehearsal divides them by
its speed (10, a grid's 30). Those of a grid are `child-killed`, `create-response-lost`, `quota-reached`, `sagemaker-throttled`,
`spot-interrupted` (lines whose market is spot) and `task-retired`; those of nodes strike its lines with the backend ec2. A fault that
cannot strike what is rehearsed is refused before anything is deployed, and of one that struck nothing the rehearsal says why, and fails.
What has the key `job` can be for one job, or grid, among several (`Yard.faults` in tests; the command line refuses it). A moment
(`at`) is `boot` (the first line of user data), `agent` (the agent's first), a phase that the node reports (`preparing`, `waiting`,
`training`, `saving`), or a step of the training.
"""
SCENARIO = """## A scenario

Faults that follow one another are a file: `--scenario FILE`, beside `--fault` or without it, for a job and not for a grid.

    python -m rehearsal --job rehearsal/scenarios/job.json --code tests/rehearsal/trainer --scenario rehearsal/scenarios/twice_lost.json

```json
"""
BEHIND = """```

`keys` are those of the fault below; texts and numbers. A `name` is what `after` of another fault names; without one it is the fault's
number in the list. A fault without `begins` is there from the job's start, and one without `ends` for as long as its `keys` say. What
either says has to be so all at once:
"""
SHARED = 5
"""A key that means the same in so many faults is described once."""
ONCE = """
What once was so counts: a fault that waits for `phase`, `step` or `closed`, and for `seconds` more, begins though an attempt has ended
meanwhile. The times of a fault's own keys (`seconds`, `after`) count from its beginning. A fault that strikes nodes strikes in the
attempt of its `begins`, where that says one, and in the first otherwise; `attempts` in its `keys` says otherwise. The rehearsal fails
where a fault of the scenario never happened; `scenario.json` beside the summary says when each began.
"""


def pages() -> dict[Path, str]:
    return {PAGE: page()}


def page() -> str:
    """Returns docs/reference/faults.md."""
    shared = _shared()
    keys = [f"- `{key}`: {meaning}" for key, meaning in sorted(shared)]
    several = ["## Keys of several faults\n", *keys, ""]
    sections = (_section(name, kind, shared) for name, kind in FAULTS.items())
    return "\n".join([HEAD, _scenario(), *several, *sections])


def _shared() -> set[tuple[str, str]]:
    """Returns (key, meaning) of what many faults have, whatever its default."""
    each = Counter((key, _meaning(one)) for kind in FAULTS.values() for key, one in kind.keys.items())
    return {one for one, times in each.items() if times >= SHARED}


def _meaning(key: FaultKey) -> str:
    return f"{key.what} ({key.allowed})"


def _scenario() -> str:
    begins = [f"- `{key}`: {what} ({allowed})" for key, (what, allowed) in MOMENT.items()]
    return "\n".join([SCENARIO + EXAMPLE.read_text() + BEHIND, *begins, ONCE])


def _section(name: str, kind: FaultKind, shared: Container[tuple[str, str]]) -> str:
    own = {key: one for key, one in kind.keys.items() if (key, _meaning(one)) not in shared}
    keys = [f"- `{key}={one.default}`: {_meaning(one)}" for key, one in own.items()]
    if others := [f"`{key}={one.default}`" for key, one in kind.keys.items() if key not in own]:
        keys.append(f"- {', '.join(others)}")
    return "\n".join(
        [f"## {name}\n", f"{_sentence(kind.what)}\n", *keys, *([""] if keys else []), f"Outcome: {kind.outcome}\n"]
    )


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
