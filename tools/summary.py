"""Prints the end of `make test` and its like: how each part of the lanes ended, and which tests failed.

`python -m tools.summary TARGET FOLDER checks lint unit -- rehearsals ...`: the folder has a file with the exit status of each part
that ended; a part that runs pytest also has its results in a .xml file. `tools.rerun` lists in a .flaky file the tests that failed in
a lane and passed when they ran alone. Up to MOST_FLAKY of them fail nothing; each is named in the last lines. What a lane's pytest
printed is in a .log file; of each of the first MOST_SCREENS failed tests a screen says what is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

from tools.screens import write_end, write_screen

MOST_FLAKY = 3
"""Tests that may fail in a lane and pass alone, in all parts together. More of them say that the change itself needs quiet."""
MOST_SCREENS = 5
SLOWEST = 10
"""Tests whose seconds are printed, if they took at least one."""
TESTS_FAILED = 1
"""Exit status of pytest when tests failed and nothing else went wrong: it was neither interrupted nor broken."""


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
    flaky: tuple[str, ...] = ()
    """Names of tests that failed in the lane and passed alone; `passed` counts them."""
    seconds: tuple[tuple[float, str], ...] = ()
    """How long each test took with its fixtures, and its name."""

    @property
    def is_good(self) -> bool:
        """True if the part ended and each test of it passed, in the lane or alone."""
        return self.code == 0 or (self.code == TESTS_FAILED and bool(self.flaky) and not self.failed)

    @property
    def words(self) -> str:
        ended = "not run" if self.code is None else "passed" if self.is_good else "failed"
        counts = (
            (self.passed, "passed"),
            (len(self.failed), "failed"),
            (self.skipped, "skipped"),
            (len(self.flaky), "flaky"),
        )
        told = ", ".join(f"{count:,} {word}" for count, word in counts if count)
        return f"{self.name} {ended}" + (f" ({told})" if told else "")


def read(folder: Path, name: str) -> Part:
    """Reads a part; if its results are missing or torn, because it was killed, it has only its exit status."""
    status = folder / name
    code = int(status.read_text()) if status.exists() else None
    cases = read_cases(folder, name)
    red = dict.fromkeys(identify(case) for case in cases if has_failed(case))
    listed = folder / f"{name}.flaky"
    flaky = [test for test in red if test in listed.read_text().splitlines()] if listed.exists() else []
    failed = [test for test in red if test not in flaky]
    skipped = sum(_has(case, "skipped") for case in cases)
    seconds = tuple((float(case.get("time", 0)), identify(case)) for case in cases)
    return Part(name, code, len(cases) - len(failed) - skipped, skipped, tuple(failed), tuple(flaky), seconds)


def read_cases(folder: Path, name: str) -> list[ElementTree.Element]:
    """Returns the tests of a part's results; none if the results are missing or torn."""
    try:
        return list(ElementTree.parse(folder / f"{name}.xml").iter("testcase"))
    except (FileNotFoundError, ElementTree.ParseError):
        return []


def has_failed(case: ElementTree.Element) -> bool:
    """True if the test, or a fixture of it, failed."""
    return _has(case, "failure") or _has(case, "error")


def identify(case: ElementTree.Element) -> str:
    """Returns the name of a test in the form that pytest takes."""
    return f"{case.get('file', case.get('classname', '?'))}::{case.get('name')}"


def _has(case: ElementTree.Element, what: str) -> bool:
    return case.find(what) is not None


def write_screens(folder: Path, parts: Sequence[Part]) -> Iterator[str]:
    """Yields a screen for each failed test, and the end of the log of a part that ended in another way."""
    logs = {part.name: str(folder / f"{part.name}.log") for part in parts}
    for part in parts:
        if part.code not in (None, 0, TESTS_FAILED):
            yield from ("", f"{part.name} ended with exit status {part.code}", *write_end(logs[part.name]))
    failed = [(part, case) for part in parts if part.failed for case in read_cases(folder, part.name)]
    screens = [(part, case) for part, case in failed if has_failed(case) and identify(case) in part.failed]
    for part, case in screens[:MOST_SCREENS]:
        yield from ("", *write_screen(identify(case), case, logs[part.name]))


def summary(target: str, lanes: dict[str, list[Part]]) -> Iterator[str]:
    """Yields lines for the target of make; the last one counts parts, so it is correct even if none of them ran tests."""
    yield ""
    width = max(map(len, lanes))
    for lane, parts in lanes.items():
        yield f"{lane:{width}}  {'; '.join(part.words for part in parts)}"
        yield from (f"{'':{width}}  FAILED {test}" for part in parts for test in part.failed)
    everything = [part for parts in lanes.values() for part in parts]
    seconds = sorted((one for part in everything for one in part.seconds if one[0] >= 1), reverse=True)[:SLOWEST]
    if seconds:
        yield "slowest tests, in seconds with their fixtures:"
        yield from (f"{duration:8.1f}  {test}" for duration, test in seconds)
    flaky = [test for part in everything for test in part.flaky]
    yield from (f"flaky: {test}" for test in flaky)
    yield f"make {target}: {_judge(everything)}"
    yield f"{sum(part.passed for part in everything)} passed, {sum(len(part.failed) for part in everything)} failed"


def is_passed(parts: Sequence[Part]) -> bool:
    """True if every part is good and no more than MOST_FLAKY tests needed a second run."""
    return all(part.is_good for part in parts) and sum(len(part.flaky) for part in parts) <= MOST_FLAKY


def _judge(parts: Sequence[Part]) -> str:
    if bad := [part.name for part in parts if not part.is_good]:
        return "not passed: " + ", ".join(bad)
    flaky = sum(len(part.flaky) for part in parts)
    if not is_passed(parts):
        return f"not passed: {flaky} tests are flaky, more than {MOST_FLAKY}"
    return "everything passed" + (f", {flaky} of it in a second run" if flaky else "")


def main(arguments: Sequence[str]) -> int:
    target, folder, *names = arguments
    groups = [list(group) for is_mark, group in groupby(names, lambda name: name == "--") if not is_mark]
    lanes = {lane: [read(Path(folder), name) for name in parts] for lane, *parts in groups}
    everything = [part for parts in lanes.values() for part in parts]
    print(*write_screens(Path(folder), everything), *summary(target, lanes), sep="\n", flush=True)
    return int(not is_passed(everything))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
