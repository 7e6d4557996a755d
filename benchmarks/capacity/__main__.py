"""`make bench-capacity`: two weeks of waiting for capacity, a thousand jobs that wait, and a thousand that train.

All functions are the real ones, on the fake AWS and a virtual clock. The Train machine of the waiting job is the definition that the
Workflow stack synthesises. Names of parts (`history`, `waiting`, `training`) as arguments run these alone, and keep what is known of the
others.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.capacity.page import broken, page
from benchmarks.pages import note_commit, noted_commits, write_page
from tests.load.capacity_returns import load
from tests.load.history import cases
from tests.load.trained_jobs import JOBS, trained

ROOT = Path(__file__).resolve().parents[2]
PAGE, FOUND = ROOT / "docs" / "benchmarks" / "capacity.md", ROOT / "build" / "capacity"
PARTS: dict[str, Callable[[], Any]] = {
    "history": lambda: {name: asdict(one) for name, one in cases().items()},
    "waiting": lambda: asdict(load()),
    "training": lambda: asdict(trained(JOBS)),
}


def main(wanted: list[str]) -> int:
    FOUND.mkdir(parents=True, exist_ok=True)
    for name in wanted or PARTS:
        results = FOUND / f"{name}.json"
        results.write_text(json.dumps(PARTS[name]()))
        note_commit(results)
    known = [name for name in PARTS if (FOUND / f"{name}.json").exists()]
    found = {name: json.loads((FOUND / f"{name}.json").read_text()) for name in known}
    write_page(PAGE, page(__doc__ or "", found), noted_commits(FOUND / f"{name}.json" for name in known))
    wrong = broken(found)
    print(PAGE.read_text(), *wrong, sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
