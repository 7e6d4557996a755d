"""Says what a rehearsal lacks on this computer. It needs nothing itself, so that a fresh clone gets a line and no traceback."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
MODULES = ("rich", "moto", "pydantic", "aws_cdk")
FILES = ("node_modules/.bin/cdk", "build/layer", "build/agent-libs", "build/ami/bin/python")
NEEDED = (3, 11)
DO = f"run `make -C {ROOT} setup-rehearsal` once, then `source {ROOT}/.venv/bin/activate`"


def describe_unready(root: Path = ROOT, modules: tuple[str, ...] = MODULES) -> str:
    """Returns a line with what is missing and what to do; empty where a rehearsal can begin."""
    if sys.version_info < NEEDED:
        running, needed = ".".join(map(str, sys.version_info[:2])), ".".join(map(str, NEEDED))
        return f"A rehearsal needs Python {needed} or later, and this is {running}: {DO}"
    if absent := [name for name in modules if importlib.util.find_spec(name) is None]:
        return f"A rehearsal needs its environment, and {sys.executable} has no {absent[0]}: {DO}"
    if lacking := [name for name in FILES if not (root / name).exists()]:
        return f"A rehearsal is not set up, as there is no {lacking[0]}: {DO}"
    return ""
