"""Regenerates pages of docs/: all with `python -m tools`, some with `python -m tools diagrams settings`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tools import (
    commands,
    compliance,
    containers,
    diagrams,
    faults,
    manifests,
    mistakes,
    requests,
    rights,
    schemas,
    settings,
)
from tools.refusals import images
from tools.refusals.grids import page as grids
from tools.refusals.jobs import page as jobs
from tools.refusals.searches import page as searches

WRITERS: dict[str, Callable[[], dict[Path, str]]] = {
    "schemas": schemas.pages,
    "requests": requests.pages,
    "settings": settings.pages,
    "manifests": manifests.pages,
    "job-refusals": jobs.pages,
    "image-refusals": images.pages,
    "grid-refusals": grids.pages,
    "search-refusals": searches.pages,
    "faults": faults.pages,
    "mistakes": mistakes.pages,
    "compliance": compliance.pages,
    "containers": containers.pages,
    "diagrams": diagrams.pages,
    "rights": rights.pages,
    "command-line": commands.pages,
}


def main(names: Sequence[str]) -> None:
    if unknown := set(names) - WRITERS.keys():
        sys.exit(f"{', '.join(sorted(unknown))}: there is no such page; allowed: {', '.join(WRITERS)}")
    for name in names or WRITERS:
        for path, text in WRITERS[name]().items():
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
