"""Fetches and unpacks the job's code archive; an unsafe one ends the job with the reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agent.failures import CannotStart
from agent.store import Missing
from contract import unpacking
from contract.archives import Refused

FOLDER = "code"
"""In the work folder."""


def bring(key: str, work: Path, fetch: Callable[[Path], object]) -> None:
    """Unpacks the archive with this key, which `fetch` brings to a file. Raises CannotStart where it is gone or unsafe."""
    archive = work / key.rpartition("/")[2]
    try:
        fetch(archive)
    except Missing as problem:
        raise CannotStart(f"the code archive is gone: {problem}") from problem
    unpack(archive, work / FOLDER)
    archive.unlink()


def unpack(archive: Path, folder: Path) -> None:
    """Raises CannotStart, which names the entry at fault."""
    try:
        unpacking.unpack(archive, folder)
    except unpacking.NoRoom as problem:
        raise CannotStart(f"the code archive {problem}: ask for a larger volume_gb") from problem
    except Refused as problem:
        raise CannotStart(f"the code archive {problem}; allowed: {problem.allowed}") from problem
