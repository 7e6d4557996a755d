"""Prints where the processor time of the last `make test` or `make test-all` went: by part, room, file and test.

`python -m tools.costs FOLDER [ROWS]`: the folder has the results of the parts as `tools.summary` reads them. A fixture counts for the
test that made it. What runs in threads beside the tests, as the local AWS does, counts for the test that was running.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tools.screens import PROCESSOR
from tools.summary import identify, read_cases

ROWS = 100


class Cost(NamedTuple):
    """What a test took."""

    part: str
    test: str
    """As pytest takes it."""
    processor_s: float
    wall_s: float

    @property
    def file(self) -> str:
        return self.test.partition("::")[0]

    @property
    def room(self) -> str:
        """The folder of the file."""
        return self.file.rpartition("/")[0]

    @property
    def function(self) -> str:
        """The test without its case."""
        return self.test.partition("[")[0]


def read_costs(folder: Path) -> Iterator[Cost]:
    """Yields what each test of each part took that left results; 0 s of processor time where they do not say."""
    for results in sorted(folder.glob("*.xml")):
        for case in read_cases(folder, results.stem):
            told = [one.get("value", "0") for one in case.iter("property") if one.get("name") == PROCESSOR]
            yield Cost(results.stem, identify(case), sum(map(float, told)), float(case.get("time", 0)))


def write_tables(costs: Sequence[Cost], rows: int) -> Iterator[str]:
    """Yields a table for each way to group the tests, the dearest first: seconds of processor time, of wall clock, tests, name."""
    for group in ("part", "room", "file", "function"):
        grouped: dict[str, list[Cost]] = defaultdict(list)
        for one in costs:
            grouped[getattr(one, group)].append(one)
        told = [
            (sum(one.processor_s for one in some), sum(one.wall_s for one in some), len(some), name)
            for name, some in grouped.items()
        ]
        yield from ("", f"{'processor':>9}  {'wall':>8}  {'tests':>6}  {group}")
        for processor_s, wall_s, tests, name in sorted(told, reverse=True)[:rows]:
            yield f"{processor_s:9.1f}  {wall_s:8.1f}  {tests:6,}  {name}"


def main(arguments: Sequence[str]) -> int:
    folder, *rest = arguments
    costs = list(read_costs(Path(folder)))
    if not costs:
        print(f"{folder} has no results: run make test first")
        return 1
    print(*write_tables(costs, int(rest[0]) if rest else ROWS), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
