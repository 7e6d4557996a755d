"""Keeps the synthesised assembly of a tree under the digest of everything that it was made from.

The digest covers all files of the tree, whatever they are, except folders that synth cannot read from (`NOT_READ`): so every new
file changes it too. An assembly is not kept if its tree changes during synth.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from localaws import shelf

ROOT = Path(__file__).parent.parent
KEEP = ROOT / "build" / "assemblies"
NOT_READ = frozenset(
    {"tests", "docs", "tools", "benchmarks", "localaws", "rehearsal", "build", "node_modules", "cdk.out"}
)
"""Folders from which synth reads nothing, beside hidden ones; a test watches what it opens."""
MADE = ("build/layer", "build/search-layer", "build/agent-libs")
"""Folders of `build` that deployments ship."""
COMPILED = "__pycache__"


def inputs(root: Path = ROOT) -> Iterator[Path]:
    """Lists every file that a template or an asset may depend on, in a fixed order."""
    for entry in sorted(root.iterdir()):
        if not entry.name.startswith(".") and entry.name not in NOT_READ and entry.name != COMPILED:
            yield from _files(entry)
    for made in MADE:
        if (root / made).exists():
            yield from _files(root / made)


def digest(values: Mapping[str, Any], root: Path = ROOT) -> str:
    """Returns the digest of the context, the tree with file modes, the installed packages' versions, and the Python that runs synth."""
    found = hashlib.sha256(json.dumps(values, sort_keys=True).encode())
    umask = os.umask(0)
    os.umask(umask)
    found.update(repr((sys.version, sys.prefix, str(root), umask, sorted(_packages()))).encode())
    for file in inputs(root):
        status, content = file.lstat(), str(file.readlink()).encode() if file.is_symlink() else file.read_bytes()
        found.update(f"{file.relative_to(root)}\0{status.st_mode}\0{len(content)}\0".encode())
        found.update(content)
    return found.hexdigest()


def kept(
    values: Mapping[str, Any], make: Callable[[Path], None], *, root: Path = ROOT, shelved: Path = KEEP
) -> AbstractContextManager[tuple[Path, bool]]:
    """Returns the assembly of these values, and whether `make` had to make it. If the tree changed meanwhile, nothing is kept."""
    name = digest(values, root)
    return shelf.kept(shelved, name, make, still=lambda: digest(values, root) == name)


def _files(entry: Path) -> Iterator[Path]:
    if entry.is_dir() and not entry.is_symlink():
        for below in sorted(entry.iterdir()):
            if below.name != COMPILED:
                yield from _files(below)
    elif entry.suffix != ".pyc":
        yield entry


def _packages() -> set[str]:
    """Returns names and versions of everything installed beside this Python, from the folders' names."""
    return {entry.name for place in map(Path, sys.path) if place.is_dir() for entry in place.glob("*-info")}
