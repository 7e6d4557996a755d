"""Names the platform's own images: their contexts, and tags that follow from the contents of the contexts."""

from __future__ import annotations

import hashlib
from pathlib import Path

from contract import names
from contract.images import content_digest
from stacks.parts.assembled import CONTRACT, ROOT, existing, files

CHILD = {".": ROOT / "grid_child", "contract": CONTRACT}
"""Folder by place in the build context, as Assembled takes it: the grid's child."""


def child_tag(base: str) -> str:
    """Returns the tag of the child's image on a base image: equal contexts have equal tags, different contexts different ones. The build
    refuses a context with another tag than its own."""
    found = {
        (Path(place) / file.relative_to(folder)).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for place, folder in CHILD.items()
        for file in files(existing(folder))
    }
    return names.child_image_tag(content_digest(found, base))
