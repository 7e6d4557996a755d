"""Writes the JSON Schemas of what a person writes: a job's request, an image's, a grid's input and a line of its manifest.

If the docstring of a module's function `schema` in lambda/ names a file of docs/, that file is the module's schema.
"""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LAMBDA = ROOT / "lambda"
NAMED = re.compile(r"^def schema\(\).*\n    .*`(docs/.*\.schema\.json)`", re.MULTILINE)


def pages() -> dict[Path, str]:
    return {
        ROOT / named[1]: json.dumps(_module(file).schema(), indent=1, ensure_ascii=False) + "\n"
        for file in sorted(LAMBDA.glob("*/*.py"))
        if (named := NAMED.search(file.read_text("utf-8")))
    }


def _module(file: Path) -> Any:
    return importlib.import_module(".".join(file.relative_to(LAMBDA).with_suffix("").parts))
