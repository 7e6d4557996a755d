"""Asks a fresh Python from where it would import libraries of the layers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PROBE = """
import json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = __import__(name).__file__
    except ImportError as problem:
        found[name] = f"!{problem}"
print(json.dumps(found))
"""


def imported_from(paths: tuple[str, ...], folder: Path, libraries: Sequence[str]) -> dict[str, str]:
    """Returns for each library its package's file, or "!" and the import error, with `paths` as PYTHONPATH in `folder`."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", PROBE, *libraries],
        env={"PYTHONPATH": ":".join(paths), "PATH": os.environ.get("PATH", "")},
        cwd=folder,
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found
