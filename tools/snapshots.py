"""Writes the snapshots of the templates with `python -m tools.snapshots`; a test compares the templates with them."""

from __future__ import annotations

import os

from tools.file_systems import EVERY
from tools.synthesis import ROOT, masked, synthesise_once

FOLDER = ROOT / "tests" / "stacks" / "snapshots"
FILE_SYSTEMS = "file-systems"
"""Below it: what a region becomes that has one file system of each kind."""

CATALOGUE, OF_THE_CATALOGUE = "catalogue", ("catalogue", "grid")
"""Below it: the stack of the catalogue, and that of grids, whose queries read it."""


def main() -> None:
    os.environ.setdefault("CDK_VALIDATION", "false")
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for template in synthesise_once().folder.glob("*.template.json"):
        (FOLDER / template.name.replace(".template", "")).write_text(masked(template.read_text()) + "\n")
    (FOLDER / CATALOGUE).mkdir(exist_ok=True)
    for stack in OF_THE_CATALOGUE:
        template = masked(synthesise_once(catalogue=True).text(stack)) + "\n"
        (FOLDER / CATALOGUE / f"trainyard-{stack}.json").write_text(template)
    (FOLDER / FILE_SYSTEMS).mkdir(exist_ok=True)
    region = synthesise_once(file_systems=EVERY).text("region-eu-central-1")
    (FOLDER / FILE_SYSTEMS / "trainyard-region-eu-central-1.json").write_text(masked(region) + "\n")


if __name__ == "__main__":
    main()
