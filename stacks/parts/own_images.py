"""Names the platform's own images: their contexts, and tags that follow from the contents of the contexts."""

from __future__ import annotations

import hashlib

from contract import names
from stacks.parts.assembled import CONTRACT, ROOT, existing, files

CHILD = {".": ROOT / "grid_child", "contract": CONTRACT}
"""Folder by place in the build context, as Assembled takes it: the grid's child."""


def child_tag() -> str:
    """Returns the tag of the child's image: equal contexts have equal tags, different contexts different ones."""
    digest = hashlib.sha256()
    for place, folder in sorted(CHILD.items()):
        for file in files(existing(folder)):
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{place}/{file.relative_to(folder).as_posix()}\n{content}\n".encode())
    return names.child_image_tag(digest.hexdigest())
