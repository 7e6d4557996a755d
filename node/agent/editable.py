"""Finds the folders from which an environment imports, beside its own: those of packages that pip installed to be edited (`-e`)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

MOST = 64 * 1024
"""Bytes that are read of one file: it may be anything."""
ORIGIN = "direct_url.json"
"""Of a package that did not come from an index: from where it was installed, and whether to be edited (PEP 610)."""
PATHS = (".pth", ".egg-link")
"""Files of a site folder with a path in each line (the reference of `site`, and setuptools before it knew PEP 660)."""


def find_outside(work: Path, installed: Iterable[str], inside: Sequence[Path]) -> str:
    """Returns a folder from which the installed files import and that lies in none of `inside`; empty where there is none.

    `installed` are paths in `work`.
    """
    own = [Path(os.path.realpath(one)) for one in inside]
    for path in installed:
        for folder in _folders(work / path):
            found = Path(os.path.realpath(folder))
            if found.is_dir() and not any(found.is_relative_to(one) for one in own):
                return folder
    return ""


def _folders(file: Path) -> Iterator[str]:
    if file.name == ORIGIN:
        yield from _edited(_start(file))
    elif file.suffix in PATHS:
        for line in _start(file).splitlines():
            if line.strip() and "\0" not in line and not line.startswith(("#", "import ", "import\t")):
                yield str(file.parent / line.strip())


def _edited(text: str) -> Iterator[str]:
    """The folder that a package is edited in, if its origin is one."""
    try:
        origin: Any = json.loads(text)
        address = urlsplit(origin["url"])
        if address.scheme == "file" and origin["dir_info"]["editable"] and "%00" not in address.path:
            yield unquote(address.path)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return  # pip wrote another


def _start(file: Path) -> str:
    with file.open("rb") as source:
        return source.read(MOST).decode("utf-8", "replace")
