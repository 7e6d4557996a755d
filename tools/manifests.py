"""Writes the page about manifests: their forms, and a table of the columns."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel

from grid_plan.cells import FOLDERS
from grid_plan.cluster_lines import INSTEAD, SAME
from grid_plan.columns import DEFAULTS, TrainingSpec
from grid_plan.job_columns import JOB_ONLY
from job_requests.request import JobRequest

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "manifest.md"
HEAD = """# Manifests

<!-- Written by `make docs` from lambda/grid_plan/columns.py. -->

A manifest is a file in UTF-8 in S3, in the home bucket below `uploads/` or in a bucket of `data_buckets`. Its form is known by
what stands in it:

- **two columns**, `region,s3_location`, without a header;
- **CSV with a header** that names its columns, in any order, separated by commas, semicolons, tabs or bars;
- **JSON Lines**, an object on each line.

Blank lines and lines that begin with `#` say nothing. An empty cell, a `null` and a field that is left out say nothing either: then the
input's `defaults` hold, which have the same fields, and then the default of the table. `hyperparameters`, `environment`, `tags`,
`metrics` and `channels` of a line are added to those of the defaults. In CSV an entry of such an object is a column of its own:
{folders}. Copies of data stand in one cell, apart by spaces; everything else that is a list or an object is JSON.

`sweep`, of a line or of the input, makes a training for every combination of its values; the input's leaves alone what a line says itself.
So `failed.jsonl` of a grid can be started again with the same input. The input's own schema is [grid.schema.json](grid.schema.json),
that of a line [manifest.schema.json](manifest.schema.json), and [grid-refusals.md](grid-refusals.md) shows what is refused.

Data may lie in the `data_buckets` of cdk.json, below `uploads/` of the home bucket, and below `uploads/` and `grids/` of the buckets
of bytes. SageMaker reads only buckets of the training's own region. Keys are not looked up before the start:
their own policies have to admit the role of trainings. `code` may lie in the `data_buckets` and below `uploads/` of the home bucket, in any
region: Plan copies it to where its lines run ([how code runs](../guides/grid.md#code)).

| column | what | default | as in |
|---|---|---|---|
"""
JOBS = """
## Lines on clusters of our own

A line with `"backend": "ec2"` is a job: an execution of the Train machine, whose request has the line's fields. Beside `region`, `code`,
`image`, `arguments`, `environment`, `volume_gb`, `market`, `max_hours` and `max_wait_hours`, which mean what they mean in
[a request](request.md), it takes:

| column | what | default | as in |
|---|---|---|---|
{columns}

Names of a line of SageMaker are taken for those of a request, so that a line may differ in `backend` alone. An `instance_type` loses its
`ml.`, a `region` of `auto` means all training regions, `hyperparameters` become arguments as AWS's toolkit writes them, and `channel`,
`mode` and `metrics` change nothing: the metric of a job is the one in its PROGRESS_FILE.

| column | field of the request |
|---|---|
{same}

| column that a job cannot have | in its place |
|---|---|
{without}
"""
TAIL = """
## Tables of pandas and spreadsheets

| what stands there | what becomes of it |
|---|---|
| a first line `sep=;`, empty cells at the ends of lines, spaces and invisible marks around a cell | nothing |
| `2.0`, `2e0` for a whole number | 2; 2.5 is refused |
| `1,000`, `0,5`, `1.000` | refused: different numbers in different languages |
| `TRUE`, `yes`, `1`, `1.0` and `FALSE`, `no`, `0`, `0.0` in CSV | true and false |
| `nan`, `None`, `NaT`, `<NA>`, `null`, `N/A`, `#N/A` in a field | refused: it may be a mistake (see below) |
| the same in a hyperparameter, a variable or a tag | sent unchanged, with a warning |
| `#REF!`, `#DIV/0!`, the error of any formula | refused, in CSV in a hyperparameter too |
| text in typographic quotes | refused in a field, sent with a warning in a hyperparameter |
| a column without a name, as the index that pandas writes | refused: `df.to_csv(index=False)` |

A field without a value is left out, and its cell left empty, as `df.to_csv()` leaves it; `astype(str)` before that writes `nan`.
Plan does not guess, because a training with another key or with other data costs money. A hyperparameter may be any text: `nan` is
what XGBoost takes for `missing`, and `None` is a depth. In JSON Lines it may be `#REF!` too.

pandas makes `10.0` of a 10 in a column of numbers in which one is missing, and a hyperparameter is sent so: `astype("Int64")` keeps the 10.
"""


def pages() -> dict[Path, str]:
    return {PAGE: page()}


def page() -> str:
    """Returns the whole page."""
    folders = ", ".join(f"`{beginning}<name>`" for beginning in FOLDERS)
    rows = [_row(name, TrainingSpec) for name in TrainingSpec.model_fields]
    jobs = [_row(name, JobRequest) for name in JOB_ONLY]
    same = [f"| `{name}` | `{other}` |" for name, (other, _) in SAME.items() if name != other]
    without = [f"| `{name}` | {instead} |" for name, instead in INSTEAD.items()]
    tables = JOBS.format(columns="\n".join(jobs), same="\n".join(same), without="\n".join(without))
    return HEAD.format(folders=folders) + "\n".join(rows) + "\n" + tables + TAIL


def _row(name: str, of: type[BaseModel]) -> str:
    field = of.model_fields[name]
    default = f"`{json.dumps(DEFAULTS[name])}`" if name in DEFAULTS else ""
    examples = " or ".join(f"`{json.dumps(one)}`" for one in field.examples or ()).replace("|", "\\|")
    return f"| `{name}` | {(field.description or '').replace('<', chr(92) + '<')} | {default} | {examples} |"
