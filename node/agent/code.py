"""Unpacks the job's code archive; an unsafe one ends the job with the reason."""

from __future__ import annotations

from pathlib import Path

from agent.failures import CannotStart
from contract import unpacking
from contract.archives import Refused


def unpack(archive: Path, folder: Path) -> None:
    """Raises CannotStart, which names the entry at fault."""
    try:
        unpacking.unpack(archive, folder)
    except unpacking.NoRoom as problem:
        raise CannotStart(f"the code archive {problem}: ask for a larger volume_gb") from problem
    except Refused as problem:
        raise CannotStart(f"the code archive {problem}") from problem
