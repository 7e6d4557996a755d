"""`make mutants`: changes lines that matter, one at a time, in a copy of the project, and shows which test notices.

Arguments are patterns of names, such as `reaper-*`; without any, all mutants run. Exits with 1 unless every one of them is killed.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from tools.mutants.run import MutantCopy, MutantFate, MutantRun
from tools.mutants.table import Mutant, read_mutants

ROOT = Path(__file__).resolve().parents[2]


def choose(mutants: Sequence[Mutant], patterns: Sequence[str]) -> list[Mutant]:
    """Returns those whose name fits a pattern, all where there is none. Exits where a pattern fits no name."""
    for pattern in patterns:
        if not any(fnmatchcase(one.name, pattern) for one in mutants):
            sys.exit(f"{pattern}: no mutant is called so; tools/mutants/*.toml have their names")
    return [one for one in mutants if not patterns or any(fnmatchcase(one.name, pattern) for pattern in patterns)]


def show(run: MutantRun, width: int) -> str:
    """Returns the mutant's row; of one that is not killed also what it would do."""
    row = f"{run.mutant.name:{width}}  {run.fate.value:8}  {run.seconds:5.1f} s  {run.why}"
    return row if run.fate is MutantFate.KILLED else f"{row}\n{'':{width}}  {run.mutant.file}: {run.mutant.harm}"


def main(patterns: Sequence[str]) -> int:
    mutants = choose(read_mutants(), patterns)
    width = max(len(one.name) for one in mutants)
    fates = Counter[MutantFate]()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for run in MutantCopy(ROOT, Path(folder) / "project").run(mutants):
            fates[run.fate] += 1
            print(show(run, width), flush=True)
    print(f"{len(mutants)} mutants: {', '.join(f'{number} {fate.value}' for fate, number in fates.items())}")
    return int(fates[MutantFate.KILLED] != len(mutants))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
