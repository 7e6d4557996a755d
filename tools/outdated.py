"""Prints a table of the pinned packages of which there is a newer version: `python -m tools.outdated`.

Only packages that pyproject.toml and package.json name; `make lock ARGS=--upgrade` renews what they bring.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

UV = [str(Path(sys.executable).with_name("uv")), "tree", "-q", "--frozen", "--universal", "--all-groups"]
NPM = ["npm", "outdated", "--json"]
LINE = re.compile(r"([\w.-]+)(?:\[.*\])? v(\S+) \(group: .*\) \(latest: v(\S+)\)$", re.MULTILINE)
"""A package of uv's tree that has a newer version."""


class OutdatedPackage(NamedTuple):
    """A package of which there is a newer version than the pinned one."""

    package: str
    pinned: str
    newest: str
    file: str
    """The file that names it."""


def read_uv(tree: str) -> set[OutdatedPackage]:
    """Reads what `uv tree --outdated` prints; a package of several groups is one."""
    found: list[tuple[str, str, str]] = LINE.findall(tree)
    return {OutdatedPackage(package, pinned, newest, "pyproject.toml") for package, pinned, newest in found}


def read_npm(report: str) -> set[OutdatedPackage]:
    """Reads what `npm outdated --json` prints, which is nothing or `{}` where all is new; exits with npm's message when it has failed."""
    packages = json.loads(report or "{}")
    if "error" in packages:
        raise SystemExit(f"npm outdated: {packages['error'].get('summary', packages['error'])}")
    return {
        OutdatedPackage(name, one.get("current", one["wanted"]), one["latest"], "package.json")
        for name, one in packages.items()
    }


def format_table(packages: Iterable[OutdatedPackage]) -> str:
    """Returns a line a package, by name, below a line of titles."""
    rows = [OutdatedPackage._fields, *sorted(packages)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines)


def main() -> None:
    tree = subprocess.run([*UV, "--outdated", "--depth", "1"], check=True, stdout=subprocess.PIPE, text=True).stdout
    # npm ends with 1 where a package is outdated.
    report = subprocess.run(NPM, check=False, stdout=subprocess.PIPE, text=True).stdout
    print(format_table(read_uv(tree) | read_npm(report)))


if __name__ == "__main__":
    main()
