"""Reads the table of mutants from the .toml files of this folder, an area a file, and applies a mutant to a source file's text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tomllib

HERE = Path(__file__).parent


class StaleMutant(ValueError):
    """The file does not have the mutant's text exactly once; the message names the mutant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change of one place, and the tests nearest to it."""

    name: str
    file: str
    """Path from the root of the project."""
    text: str
    """Occurs exactly once in the file: a line that moves or changes takes its mutant along."""
    becomes: str
    tests: tuple[str, ...]
    """Test files, of which at least one test has to fail."""
    harm: str
    """One sentence: what would happen in an account."""

    def mutate(self, source: str) -> str:
        """Returns the file's text with the change. Raises StaleMutant."""
        if (found := source.count(self.text)) != 1:
            raise StaleMutant(
                f"{self.name}: {self.file} has its text {found} times, and must have it once:\n{self.text}"
            )
        return source.replace(self.text, self.becomes)


def read_mutants(folder: Path = HERE) -> list[Mutant]:
    """Returns all mutants, file by file. Raises TypeError for a field that is missing or unknown."""
    tables = (tomllib.loads(file.read_text()) for file in sorted(folder.glob("*.toml")))
    return [Mutant(**{**one, "tests": tuple(one["tests"])}) for table in tables for one in table["mutant"]]
