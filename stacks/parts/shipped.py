"""Finds the packages of lambda/ for a function's archive: its own, and the shared rooms that it imports, by reading the sources."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOMS = frozenset(
    {
        "aws",
        "ending",
        "git_code",
        "grid_plan",
        "grids",
        "job_checks",
        "job_requests",
        "messages",
        "pages",
        "refusals",
        "searches",
    }
)
"""Packages of lambda/ that functions share. All others are functions, which nothing may import."""


class NotShared(ValueError):
    """Something imports a function's package, which only that function's archive contains."""


def shipped(function: str, root: Path) -> tuple[str, ...]:
    """Returns the function's own package and the rooms in `root` that it imports, directly or through others. Raises NotShared."""
    known = {path.name for path in root.iterdir() if path.is_dir()}
    found, waiting = set[str](), [function]
    while waiting:
        package = waiting.pop()
        if package in found:
            continue
        found.add(package)
        wanted = (_imported(root / package) & known) - {package}
        if strangers := sorted(wanted - ROOMS):
            raise NotShared(
                f"lambda/{package} imports {', '.join(strangers)}; allowed: the shared rooms {', '.join(sorted(ROOMS))}"
            )
        waiting += wanted
    return tuple(sorted(found))


def _imported(package: Path) -> set[str]:
    """Top-level names of all imports in the package's files, anywhere in a file."""
    return {name for file in package.rglob("*.py") for name in _names(file.read_text())}


@cache
def _names(source: str) -> frozenset[str]:
    found = set[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return frozenset(found)
