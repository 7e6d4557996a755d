"""One row of the tables of refused grids, and the words that many rows share."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from grid_plan import cells, columns, limits, request
from tools.refusals.grids.yard import (
    ACCOUNT,
    BUCKET,
    CONTAINERS,
    DATA_BUCKETS,
    DEFAULTS,
    HOME,
    LIMITS,
    MANIFEST,
    bytes_bucket,
    execution,
)
from tools.refusals.refusal import Refusal

ARN = execution()["arn"]
BYTES = bytes_bucket("").rstrip("-")
COLUMNS = ", ".join([*cells.SYNONYMS, *cells.READERS, *(f"{one}<name>" for one in cells.FOLDERS)])
FIELDS = ", ".join(columns.TrainingSpec.model_fields)
DATA_PLACES = ", ".join(f"s3://{one}/..." for one in DATA_BUCKETS)
UPLOADED = f"s3://{BUCKET}/uploads/..."
PLACES = f"{DATA_PLACES}, {UPLOADED}, s3://{BYTES}-<region>/uploads/..., s3://{BYTES}-<region>/grids/... (data_buckets in cdk.json)"
MANIFESTS = f"{UPLOADED}, s3://{BUCKET}/grids/..., {DATA_PLACES} (data_buckets in cdk.json)"
ALLOWED = limits.allowed(LIMITS) | request.ALLOWED
MISSING = "stands for a missing value (leave the cell empty, or leave the field out)"
GOOD = "eu-central-1,s3://data-eu/train/\n"
"""The smallest manifest that is planned, with the input of `Row.input`."""


class Row(Refusal):
    """A refusal of a grid; what is given are fields that are put into the input."""

    def __init__(
        self,
        what: str,
        manifest: str | bytes,
        *says: str,
        given: Any = None,
        run: Mapping[str, str] | None = None,
        shown: str = "",
        **more: Any,
    ) -> None:
        """`shown` is what the page shows in the place of a manifest that is too long to read; `without` of `more` removes fields
        from the defaults."""
        super().__init__(what, {} if given is None else given, *says, **more)
        self.manifest, self.run, self.shown = manifest, run or execution(), shown

    @property
    def input(self) -> Any:
        if self.whole:
            return self.given
        defaults = {name: value for name, value in DEFAULTS.items() if name not in self.without}
        return {"manifest": MANIFEST, "defaults": defaults} | self.given

    def reasons(self) -> list[str]:
        return self.completed(_allowed)


def _allowed(reason: str) -> str:
    names = re.sub(r"^lines? [^:]*: ", "", reason).removeprefix("defaults.")
    return ALLOWED[re.split("[.:]", names)[0]]


def line(**given: Any) -> str:
    """Returns one line of JSON that needs nothing of the smallest manifest."""
    return json.dumps({"region": "eu-central-1", "data": "s3://data-eu/train/"} | given, ensure_ascii=False) + "\n"


CONTAINER = f"{CONTAINERS}.dkr.ecr.{HOME}.amazonaws.com/pytorch-training:2.8"
STRANGE = f"999988887777.dkr.ecr.{HOME}.amazonaws.com/lab/x:1"
OURS = f"{ACCOUNT}.dkr.ecr.{HOME}.amazonaws.com/lab/images:1"
FOLDER = f"s3://{bytes_bucket(HOME)}/grids/old/00000001/checkpoints"
