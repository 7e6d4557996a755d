"""Writes the page of the fields that a person gives: of a job's request, of a grid's input, and of an image's request.

The JSON Schemas have the names, meanings, defaults and examples; only the links are written here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools import schemas

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
PAGE = REFERENCE / "request.md"
HEAD = """# Requests

<!-- Written by `make docs` from the schemas of the functions that read requests, and from tools/requests.py. -->

The fields of what a person pastes into the Step Functions console. Where the default is empty, the field may be left out, and its
meaning says what holds then. A request with an unknown field or a wrong value is rejected before anything is created,
and every such field is named.
"""
JOB = """
## A job

The input of `<deployment>-train`. Each name leads to what it may be and to every answer to a wrong value. [Schema](request.schema.json).
"""
GRID = """
## A grid

The input of `<deployment>-grid`. [manifest.md](manifest.md) has the fields of a line and of `defaults`,
[grid-refusals.md](grid-refusals.md) what is refused. [Schema](grid.schema.json).
"""
IMAGE = """
## An image

The input of `<deployment>-build`. [image-refusals.md](image-refusals.md) has what is refused. [Schema](build.schema.json).
"""
TABLE = "| field | meaning | default | for example |\n|---|---|---|---|\n"
NEEDED = {
    "code": "required without `image`",
    "command": "required without `image`",
    "instance_types": "this or `accelerators`",
    "accelerators": "this or `instance_types`",
    "context": "this or `copy`",
    "copy": "this or `context`",
}
"""Fields that stand for each other: a schema says so for all of them together."""
MORE = {
    "preset": ("presets", "../guides/jobs.md#presets"),
    "tags": ("tags", "../guides/cost.md#whose-cost-it-is"),
    "code": ("code", "../guides/code.md"),
    "launcher": ("launchers", "../guides/launchers.md"),
    "processes_per_node": ("Neuron cores", "../guides/accelerators.md#trainium-and-inferentia"),
    "image": ("containers", "../guides/containers.md"),
    "accelerators": ("accelerators", "../guides/accelerators.md"),
    "efa": ("EFA", "../guides/accelerators.md#efa"),
    "regions": ("capacity", "../guides/capacity.md"),
    "market": ("capacity", "../guides/capacity.md"),
    "reservation": ("reservations", "../guides/capacity.md"),
    "max_wait_hours": ("waiting", "../guides/capacity.md"),
    "max_cost_usd": ("cost", "../guides/cost.md"),
    "checkpoint_scope": ("who writes", "../guides/checkpoints.md#what-each-rank-writes"),
    "checkpoint_layout": ("layouts", "../guides/checkpoints.md#layouts-of-frameworks"),
    "checkpoint_restore": ("when `own` is enough", "../guides/checkpoints.md#what-is-restored"),
    "resume_from": ("how", "../guides/checkpoints.md#begin-from-another-job"),
    "retries": ("how often a job begins again", "../guides/checkpoints.md#how-often-a-job-begins-again"),
    "stall": ("stalls", "../guides/stalls.md"),
    "notify": ("messages", "../guides/messages.md"),
    "health": ("health", "../guides/health.md"),
    "volume_gb": ("disks", "../guides/disks.md"),
    "machine_image": ("own images", "../guides/own-image.md"),
    "job_role": ("job roles", "../guides/job-roles.md"),
    "mounts": ("mounts", "../guides/mounts.md"),
}
"""Field of a job to the page that explains it."""


def pages() -> dict[Path, str]:
    return {PAGE: page()}


def page() -> str:
    """Returns docs/reference/request.md."""
    written = schemas.pages()
    job, grid, image = (json.loads(written[REFERENCE / f"{name}.schema.json"]) for name in ("request", "grid", "build"))
    return HEAD + JOB + _table(job, links=MORE, refusals="refusals.md") + GRID + _table(grid) + IMAGE + _table(image)


def _table(schema: Mapping[str, Any], *, links: Mapping[str, tuple[str, str]] | None = None, refusals: str = "") -> str:
    required = schema.get("required", ())
    rows = []
    for name, field in schema["properties"].items():
        words, address = (links or {}).get(name, ("", ""))
        meaning = _cell(field["description"]) + (f" [More: {words}]({address})." if words else "")
        shown = f"[`{name}`]({refusals}#{name})" if refusals else f"`{name}`"
        default = "required" if name in required else NEEDED.get(name) or _default(field.get("default"))
        example = ", or ".join(f"`{json.dumps(one)}`" for one in field.get("examples", ()))
        rows.append(f"| {shown} | {meaning} | {default} | {_cell(example)} |")
    return "\n" + TABLE + "\n".join(rows) + "\n"


def _default(value: object) -> str:
    """Shows a plain value; lists and objects are empty where nothing is given."""
    return f"`{json.dumps(value)}`" if isinstance(value, bool | int | float | str) and value != "" else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
