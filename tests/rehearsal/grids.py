"""Grids on the deployed account: where their data and their small image lie, and how a test starts one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract import names
from contract.metric_values import write_expression
from localaws.containers.images import keep
from localaws.testing.calm import meanwhile
from localaws.testing.grid import IMAGES, MANIFEST
from rehearsal import grid
from rehearsal.grid import GridJob, GridSummary
from rehearsal.yard import Yard
from tests.rehearsal.regions import REGIONS

EXAMPLE = Path(__file__).parents[2] / "examples" / "grid"
HOME, AWAY = (place["region"] for place in REGIONS[:2])
SMALL = {
    "image": "images:small",
    "instance_type": "ml.m5.large",
    "max_hours": 1,
    "metrics": {"loss": write_expression("loss")},
}
"""What a line is trained with: a program without a framework."""
ENDLESS = {"steps": 100_000, "pause": 0.1}
GRID_FAULTS = {
    "killed": "child-killed:line=all,after=90",
    "lost": "create-response-lost:line=all",
    "quota": "quota-reached:seconds=200",
    "throttled": "sagemaker-throttled:seconds=120",
    "interrupted": "spot-interrupted:line=all,after=30,times=2",
    "retired": "task-retired:line=all,after=90",
}
"""Each fault of a grid, alone."""
WELL = GridSummary(
    grid="g",
    status="SUCCEEDED",
    lines=2,
    regions={"eu-central-1": 2},
    outcomes={"Completed": 2},
    trainings=2,
    jobs=0,
    interruptions=0,
    children=2,
    attempts=3,
    trainings_left=[],
    children_left=[],
    processes_left=0,
    instances_left=0,
    astray=[],
    state_path=[],
    execution_s=1.0,
    wall_s=2.0,
)
"""What is said of a grid with no shortcoming."""


@dataclass(frozen=True)
class Field:
    """What the grids of a file share."""

    yard: Yard
    data: dict[str, str]
    """Region to the address of its digits."""

    @classmethod
    def of(cls, yard: Yard, folder: Path) -> Field:
        """`folder` is empty, and kept as long as the grids run."""
        push(yard, "small", folder)
        return cls(yard, grid.upload_data(yard, EXAMPLE / "digits"))

    def line(self, region: str, **more: Any) -> dict[str, Any]:
        return {"region": region, "data": self.data[region], **more}

    def start(self, name: str, *lines: dict[str, Any], **request: Any) -> GridJob:
        text = "".join(json.dumps(line) + "\n" for line in lines)
        address = grid.upload_manifest(self.yard, text, f"{name}.jsonl")
        return grid.start(self.yard, {"manifest": address, "defaults": SMALL, **request}, name)


@contextmanager
def sooner(yard: Yard) -> Iterator[None]:
    """Trainings have their instances sooner than under the yard's conditions, and events arrive."""
    with meanwhile(yard.aws, training_start_s=(15.0, 25.0), task_start_s=(5.0, 15.0), events_lost=0.0):
        yield


def push(yard: Yard, tag: str, folder: Path) -> None:
    """An image of the small program, under the tag in both regions, as a build would have left it."""
    files = IMAGES["toolkit"]
    for name, text in files.items():
        (folder / name).write_text(text)
    manifest = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "files": files})
    keep(yard.aws.work / "images", hashlib.sha256(manifest.encode()).hexdigest(), folder, {})
    for region in (HOME, AWAY):
        ecr = yard.client("ecr", region)
        repository = names.repository("trainyard")
        if not ecr.batch_get_image(repositoryName=repository, imageIds=[{"imageTag": tag}])["images"]:
            ecr.put_image(repositoryName=repository, imageManifest=manifest, imageTag=tag)
