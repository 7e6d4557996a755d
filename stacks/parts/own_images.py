"""The platform's own images: their contexts, and the tags that name them by what is in those."""

from __future__ import annotations

import hashlib

from contract import names
from stacks.parts.assembled import CONTRACT, ROOT, existing, files

CHILD = {".": ROOT / "grid_child", "contract": CONTRACT}
"""Place in the context to folder, as Assembled takes it: the grid's child."""


def child_tag() -> str:
    """Of the child's image: another context has another tag, and the same one always the same."""
    digest = hashlib.sha256()
    for place, folder in sorted(CHILD.items()):
        for file in files(existing(folder)):
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{place}/{file.relative_to(folder).as_posix()}\n{content}\n".encode())
    return names.child_image_tag(digest.hexdigest())
