"""Packs a folder of code as a person would upload it."""

from __future__ import annotations

import tarfile
from io import BytesIO
from pathlib import Path

SKIPPED = {"__pycache__", ".git", ".venv", "node_modules"}
"""Folders that an upload leaves out."""


def pack(folder: Path) -> bytes:
    """Returns the folder's content as a .tar.gz. Raises OSError for a file that cannot be read."""
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path in sorted(folder.iterdir()):
            if path.name not in SKIPPED:
                archive.add(
                    path, arcname=path.name, filter=lambda entry: None if Path(entry.name).name in SKIPPED else entry
                )
    return packed.getvalue()
