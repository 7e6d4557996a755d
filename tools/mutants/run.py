"""Runs mutants in a copy of the project: the tests pass without the change, and fail with it, or the mutant has survived."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tools.mutants.table import Mutant, StaleMutant
from tools.summary import Part, read

LEFT_OUT = (".git", "__pycache__", "cdk.out", "out")
"""Names of files and folders that no test needs."""
LINKED = (".venv", "node_modules")
SET_UP = "build"
"""A folder of what set-up made: its entries are linked, so that a test may add to it."""
LONGEST_TEST_S = 120
"""A mutant may make a test wait for ever; a test that is ended for its time has failed."""


class MutantFate(str, Enum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    STALE = "stale"
    """Its text is not in the file exactly once."""
    BROKEN = "broken"
    """Its tests fail, or are missing, without the change; or they could not be run with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantRun:
    """One mutant's row of the table."""

    mutant: Mutant
    fate: MutantFate
    seconds: float = 0.0
    """Wall time with the change, without that of the tests before it."""
    why: str = ""
    """The test that killed it; else what is wrong."""


class MutantCopy:
    """A copy of the project in which tests run. The project itself is only read."""

    def __init__(self, root: Path, folder: Path) -> None:
        """`folder` must not exist."""
        self._root, self._folder = root, folder
        shutil.copytree(root, folder, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT, *LINKED, SET_UP))
        for name in LINKED:
            if (root / name).exists():
                (folder / name).symlink_to((root / name).resolve())
        (folder / SET_UP).mkdir()
        for one in (root / SET_UP).glob("*"):
            (folder / SET_UP / one.name).symlink_to(one.resolve())
        self._times = itertools.count(int(time.time()))
        self._without_change: dict[tuple[str, ...], Part] = {}

    def run(self, mutants: Sequence[Mutant]) -> Iterator[MutantRun]:
        """Yields each mutant's row when it is known. Tests run once without a change, whichever mutants name them."""
        for mutant in mutants:
            yield self._run(mutant)

    def _run(self, mutant: Mutant) -> MutantRun:
        file = self._folder / mutant.file
        try:
            source = file.read_text()
            mutated = mutant.mutate(source)
        except (OSError, StaleMutant) as problem:
            return MutantRun(mutant=mutant, fate=MutantFate.STALE, why=str(problem))
        if why := self._unfit(mutant.tests):
            return MutantRun(mutant=mutant, fate=MutantFate.BROKEN, why=why)
        began = time.monotonic()
        self._write(file, mutated)
        try:
            part = self._pytest(mutant.tests)
        finally:
            self._write(file, source)
        fate, why = judge(part)
        return MutantRun(mutant=mutant, fate=fate, seconds=time.monotonic() - began, why=why)

    def _unfit(self, tests: tuple[str, ...]) -> str:
        """Why nothing follows from these tests; empty where they pass."""
        if absent := [test for test in tests if not (self._folder / test).is_file()]:
            return f"there is no {', '.join(absent)}"
        if tests not in self._without_change:
            self._without_change[tests] = self._pytest(tests)
        part = self._without_change[tests]
        if part.code == 0 and part.passed:
            return ""
        return f"without the change: pytest ended with {part.code}, {part.passed} passed; {', '.join(part.failed)}"

    def _write(self, file: Path, source: str) -> None:
        """Python knows a changed file by its time in seconds and its size: each version gets a time of its own."""
        file.write_text(source)
        at = next(self._times)
        os.utime(file, (at, at))

    def _pytest(self, tests: Sequence[str]) -> Part:
        results = self._folder / SET_UP / "mutants"
        shutil.rmtree(results, ignore_errors=True)
        results.mkdir()
        options = ["-x", "-q", f"--timeout={LONGEST_TEST_S}", f"--junit-xml={results}/tests.xml"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, "-o", "junit_family=xunit1", *tests],
            cwd=self._folder,
            env=self._variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        (results / "tests").write_text(str(done.returncode))
        return read(results, "tests")

    def _variables(self) -> dict[str, str]:
        programs = [str(self._folder / ".venv" / "bin"), str(self._folder / "node_modules" / ".bin")]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return kept | {"PATH": os.pathsep.join([*programs, os.environ.get("PATH", os.defpath)])}


def judge(part: Part) -> tuple[MutantFate, str]:
    """Returns the fate that follows from the tests' results with the change, and why."""
    if part.code == 0:
        return MutantFate.SURVIVED, "no test fails"
    if part.code == 1 and part.failed:
        return MutantFate.KILLED, part.failed[0]
    return MutantFate.BROKEN, f"with the change: pytest ended with {part.code}, and no test failed"
