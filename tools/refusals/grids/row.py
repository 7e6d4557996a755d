"""One row of the tables of refused grids, and the words that many rows share."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from grid_plan import asked, cells, columns, limits
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

ARN = execution()["arn"]
BYTES = bytes_bucket("").rstrip("-")
COLUMNS = ", ".join(["s3_location", *cells.READERS, *(f"{one}<name>" for one in cells.FOLDERS)])
FIELDS = ", ".join(columns.TrainingSpec.model_fields)
DATA_PLACES = ", ".join(f"s3://{one}/..." for one in DATA_BUCKETS)
UPLOADED = f"s3://{BUCKET}/uploads/..."
PLACES = f"{DATA_PLACES}, {UPLOADED}, s3://{BYTES}-<region>/uploads/..., s3://{BYTES}-<region>/grids/... (data_buckets in cdk.json)"
MANIFESTS = f"{UPLOADED}, s3://{BUCKET}/grids/..., {DATA_PLACES} (data_buckets in cdk.json)"
ALLOWED = limits.allowed(LIMITS) | asked.ALLOWED
GOOD = "eu-central-1,s3://data-eu/train/\n"
"""The smallest manifest that is planned, with the input of `Row.input`."""


@dataclass(frozen=True, slots=True)
class Row:
    """One refusal: what is wrong, the manifest, the fields of the input, the reasons of the answer."""

    what: str
    manifest: str | bytes
    says: tuple[str, ...]
    """The reasons; one without `; allowed: ` ends with what its field may be."""
    given: Any = field(default_factory=dict)
    """Fields that are put into the input."""
    without: tuple[str, ...] = ()
    """Fields that are removed from the defaults."""
    whole: bool = False
    """Whether the given value is the whole input."""
    run: Mapping[str, str] = field(default_factory=execution)
    shown: str = ""
    """What the page shows in the place of a manifest that nobody would read."""

    @property
    def input(self) -> Any:
        if self.whole:
            return self.given
        defaults = {name: value for name, value in DEFAULTS.items() if name not in self.without}
        return {"manifest": MANIFEST, "defaults": defaults} | self.given

    def reasons(self) -> list[str]:
        return [_whole(reason) for reason in self.says]


def _whole(reason: str) -> str:
    if "; allowed: " in reason:
        return reason
    names = re.sub(r"^lines? [^:]*: ", "", reason).removeprefix("defaults.")
    return f"{reason}; allowed: {ALLOWED[re.split('[.:]', names)[0]]}"


def line(**given: Any) -> str:
    """Returns one line of JSON that needs nothing of the smallest manifest."""
    return json.dumps({"region": "eu-central-1", "data": "s3://data-eu/train/"} | given, ensure_ascii=False) + "\n"


CONTAINER = f"{CONTAINERS}.dkr.ecr.{HOME}.amazonaws.com/pytorch-training:2.8"
STRANGE = f"999988887777.dkr.ecr.{HOME}.amazonaws.com/lab/x:1"
OURS = f"{ACCOUNT}.dkr.ecr.{HOME}.amazonaws.com/lab/images:1"
FOLDER = f"s3://{bytes_bucket(HOME)}/grids/old/00000001/checkpoints"
