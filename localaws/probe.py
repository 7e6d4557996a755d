"""Asks a fresh Python from where it would import the libraries that both the layer and AWS's runtime have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PROBE = """
import json, sys
found = {}
for name in ("boto3", "pydantic_core"):
    try:
        found[name] = __import__(name).__file__
    except ImportError as problem:
        found[name] = f"!{problem}"
print(json.dumps(found))
"""


def imported_from(paths: tuple[str, ...], folder: Path) -> dict[str, str]:
    """Returns for each library its package's file, or "!" and the import error, with `paths` as PYTHONPATH in `folder`."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", PROBE],
        env={"PYTHONPATH": ":".join(paths), "PATH": os.environ.get("PATH", "")},
        cwd=folder,
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found
