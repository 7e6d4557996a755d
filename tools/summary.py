"""Prints the end of `make test` and its like: how each part of the lanes ended, and which tests failed.

`python -m tools.summary TARGET FOLDER checks lint unit -- rehearsals ...`: the folder has a file with the exit status of each part
that ended; a part that runs pytest also has its results in a .xml file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree


@dataclass(frozen=True, slots=True)
class Part:
    """One command of a lane."""

    name: str
    code: int | None
    """Exit status; None if the part did not end, or was never started."""
    passed: int = 0
    skipped: int = 0
    failed: tuple[str, ...] = ()
    """Names of failed tests, in the form that pytest takes."""

    @property
    def words(self) -> str:
        ended = "not run" if self.code is None else "failed" if self.code else "passed"
        counts = ((self.passed, "passed"), (len(self.failed), "failed"), (self.skipped, "skipped"))
        told = ", ".join(f"{count:,} {word}" for count, word in counts if count)
        return f"{self.name} {ended}" + (f" ({told})" if told else "")


def read(folder: Path, name: str) -> Part:
    """Reads a part; if its results are missing or torn, because it was killed, it has only its exit status."""
    status = folder / name
    code = int(status.read_text()) if status.exists() else None
    try:
        cases = list(ElementTree.parse(folder / f"{name}.xml").iter("testcase"))
    except (FileNotFoundError, ElementTree.ParseError):
        return Part(name, code)
    failed = dict.fromkeys(_identity(case) for case in cases if _has(case, "failure") or _has(case, "error"))
    skipped = sum(_has(case, "skipped") for case in cases)
    return Part(name, code, len(cases) - len(failed) - skipped, skipped, tuple(failed))


def _has(case: ElementTree.Element, what: str) -> bool:
    return case.find(what) is not None


def _identity(case: ElementTree.Element) -> str:
    return f"{case.get('file', case.get('classname', '?'))}::{case.get('name')}"


def summary(target: str, lanes: dict[str, list[Part]]) -> Iterator[str]:
    """Yields lines for the target of make; the last one counts parts, so it is correct even if none of them ran tests."""
    yield ""
    width = max(map(len, lanes))
    for lane, parts in lanes.items():
        yield f"{lane:{width}}  {'; '.join(part.words for part in parts)}"
        yield from (f"{'':{width}}  FAILED {test}" for part in parts for test in part.failed)
    everything = [part for parts in lanes.values() for part in parts]
    passed = sum(part.passed for part in everything)
    failed = sum(len(part.failed) for part in everything)
    bad = [part.name for part in everything if part.code != 0]
    yield f"make {target}: {'not passed: ' + ', '.join(bad) if bad else 'everything passed'}"
    yield f"{passed} passed, {failed} failed"


def main(arguments: Sequence[str]) -> int:
    target, folder, *names = arguments
    groups = [list(group) for is_mark, group in groupby(names, lambda name: name == "--") if not is_mark]
    lanes = {lane: [read(Path(folder), name) for name in parts] for lane, *parts in groups}
    print(*summary(target, lanes), sep="\n", flush=True)
    return int(any(part.code != 0 for parts in lanes.values() for part in parts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
