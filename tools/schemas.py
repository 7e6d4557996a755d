"""JSON Schemas of what a person writes: a job's request, an image's, a grid's input and a line of its manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import admission.request
import image_build.request
from grid_plan import asked, columns

DOCS = Path(__file__).parents[1] / "docs"
REQUEST, BUILD, GRID, MANIFEST = (DOCS / f"{name}.schema.json" for name in ("request", "build", "grid", "manifest"))


def pages() -> dict[Path, str]:
    return {
        REQUEST: text(admission.request.schema()),
        BUILD: text(image_build.request.schema()),
        GRID: text(asked.schema()),
        MANIFEST: text(columns.schema()),
    }


def text(schema: dict[str, Any]) -> str:
    """As all schemas in docs/ are written."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
