"""Writes the snapshots of the templates with `python -m tools.snapshots`; a test compares the templates with them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tools.synthesis import ROOT, masked, synthesise

FOLDER = ROOT / "tests" / "stacks" / "snapshots"


def main() -> None:
    os.environ.setdefault("CDK_VALIDATION", "false")
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.json"):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        synthesise(Path(folder))
        for template in Path(folder).glob("*.template.json"):
            (FOLDER / template.name.replace(".template", "")).write_text(masked(template.read_text()) + "\n")


if __name__ == "__main__":
    main()
