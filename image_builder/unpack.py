"""Unpacks a build context: `python3 unpack.py context.tar.gz folder`. The Build machine has checked the archive before."""

from __future__ import annotations

import sys
from pathlib import Path

from contract import unpacking
from contract.archives import Refused


def unpack(archive: Path, folder: Path) -> None:
    """Exits with a reason if the archive is unsafe or not a build context."""
    try:
        unpacking.unpack(archive, folder)
    except Refused as problem:
        raise SystemExit(f"The context {problem}; allowed: {problem.allowed}.") from problem
    if not (folder / "Dockerfile").is_file():
        raise SystemExit("The context has no Dockerfile at its root.")


if __name__ == "__main__":
    unpack(Path(sys.argv[1]), Path(sys.argv[2]))
