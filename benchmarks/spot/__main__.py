"""`make bench-spot`: how much of what is paid becomes progress, over traces of spot capacity that were measured on AWS.

`python -m benchmarks.spot [CASE ...] [--traces FOLDER]` replays these cases alone (`cases.py`), and keeps what is known of the others;
`--relaunch` measures how soon a new attempt is launched; `--page` writes the page again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path

from benchmarks.pages import note_commit, noted_commits, write_page
from benchmarks.spot import page
from benchmarks.spot.cases import CASES, NOTICED, TABLE
from benchmarks.spot.relaunch import Relaunched, relaunched
from benchmarks.spot.replay import Replayed, replay
from benchmarks.spot.traces import MISSING, VARIABLE, Trace, Unusable, traces

ROOT = Path(__file__).resolve().parents[2]
PAGE, FOUND = ROOT / "docs" / "benchmarks" / "spot.md", ROOT / "build" / "spot"
RELAUNCH = "relaunch.json"


def main(given: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.spot", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all without one")
    parser.add_argument("--traces", default=os.environ.get(VARIABLE, ""), help="the folder of the traces")
    parser.add_argument(
        "--relaunch", action="store_true", help="measures the launches of new attempts, and replays nothing"
    )
    parser.add_argument("--page", action="store_true", help="writes the page of what is known, and replays nothing")
    asked = parser.parse_args(given)
    if unknown := set(asked.cases) - CASES.keys():
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    try:
        if not asked.traces:
            raise Unusable(MISSING)
        found = traces(Path(asked.traces))
    except Unusable as problem:
        print(problem, file=sys.stderr)
        return 2
    FOUND.mkdir(parents=True, exist_ok=True)
    if asked.relaunch or not (asked.cases or asked.page):
        (FOUND / RELAUNCH).write_text(json.dumps(asdict(relaunched())))
        note_commit(FOUND / RELAUNCH)
    if not (asked.relaunch or asked.page):
        _replay(found, asked.cases or CASES)
    known = {name: _known(name, found) for name in CASES}
    soon = Relaunched(**json.loads((FOUND / RELAUNCH).read_text())) if (FOUND / RELAUNCH).exists() else None
    write_page(PAGE, page.page(found, known, soon), noted_commits(FOUND.glob("*.json")))
    wrong = page.broken(found, known, soon)
    print(PAGE.read_text(), *wrong, sep="\n")
    return bool(wrong)


def _file(case: str, trace: Trace) -> Path:
    return FOUND / f"{case} {trace.name}.json"


def _replay(found: Sequence[Trace], cases: Iterable[str]) -> None:
    """Side by side: each is the same whatever runs beside it. Other assumptions are replayed on the hardest trace alone."""
    asked = [(case, trace) for case in cases for trace in _of(case, found)]
    # Not forked: all of them would talk to one process of jsii, which synthesises the machine.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        begun = {pool.submit(replay, trace, CASES[case][1]): (case, trace) for case, trace in asked}
        for ended in as_completed(begun):
            case, trace = begun[ended]
            _file(case, trace).write_text(json.dumps(asdict(ended.result())))
            note_commit(_file(case, trace))
            print(f"{case}: {trace.name}: {ended.result().share:.4f}", file=sys.stderr, flush=True)


def _of(case: str, found: Sequence[Trace]) -> Sequence[Trace]:
    return _longest_first(found) if case in (TABLE, NOTICED) else found[:1]


def _longest_first(found: Sequence[Trace]) -> list[Trace]:
    return sorted(found, key=lambda one: -one.nodes * len(one.stretches))


def _known(case: str, found: Iterable[Trace]) -> Mapping[str, Replayed]:
    files = {trace.name: _file(case, trace) for trace in found}
    return {name: Replayed(**json.loads(file.read_text())) for name, file in files.items() if file.exists()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
