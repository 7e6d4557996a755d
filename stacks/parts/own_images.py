"""The platform's own images: their contexts, and the tags that name them by what is in those."""

from __future__ import annotations

import hashlib
from pathlib import Path

from contract import names
from stacks.parts.assembled import COMPILED, CONTRACT, ROOT, existing

CHILD = {".": ROOT / "child", "contract": CONTRACT}
"""Place in the context to folder, as Assembled takes it: the grid's child."""


def child_tag() -> str:
    """Of the child's image: another context has another tag, and the same one always the same."""
    digest = hashlib.sha256()
    for place, folder in sorted(CHILD.items()):
        for file in _files(existing(folder)):
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{place}/{file.relative_to(folder).as_posix()}\n{content}\n".encode())
    return names.child_image_tag(digest.hexdigest())


def _files(folder: Path) -> list[Path]:
    """Those that the assembled context has, too."""
    left_out = COMPILED(str(folder), [entry.name for entry in folder.iterdir()])
    wanted = sorted(entry for entry in folder.iterdir() if entry.name not in left_out)
    return [file for entry in wanted for file in (_files(entry) if entry.is_dir() else [entry])]
