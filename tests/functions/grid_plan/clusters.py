"""What Plan finds in AWS for lines that become jobs: regions that train, types, machine images, and images of containers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract import keys, names
from contract.codec import encode
from contract.environments import LineCluster
from contract.job_settings import SETTINGS_FILE, JobSettings
from contract.mounts import FileSystems
from contract.places import Place, Zone
from contract.timing import Timing
from tests.archives import packed
from tests.builders import FILE_SYSTEMS, IMAGE
from tests.fakes.ec2_catalogue import Catalogue
from tests.functions.grid_plan.account import ENVIRONMENT, Account
from tools.refusals.grids.yard import ACCOUNT, BUCKET, CONTAINERS, HOME, REGIONS, bytes_bucket

TRAINING = (HOME, "us-east-1")
"""Regions in which jobs run; a grid has lines in more of them."""
SETTINGS = JobSettings(
    regions=TRAINING,
    images={"x86_64": "/aws/service/x"},
    machine_images={"digits": "/aws/service/x"},
    image_owners=(),
    base_accounts={"": CONTAINERS},
    copy_accounts=(),
    git_hosts={"git.example.com": ""},
    job_roles=("datasets",),
    timing=Timing(),
)
SECRET = f"arn:aws:secretsmanager:{HOME}:{ACCOUNT}:secret:trainyard/yard/token"
ENTRY = ["python", "/app/train.py"]


def describe_place(region: str) -> Place:
    zones = tuple(Zone(name=f"{region}{one}", subnet=f"subnet-{region}-{one}", placement_groups=()) for one in "ab")
    return Place(
        region=region,
        bucket=bytes_bucket(region),
        security_groups=("sg-1",),
        launch_template="lt-1",
        launch_template_version="1",
        zones=zones,
    )


def open_clusters(there: Account) -> None:
    """Adds what a job needs. The image `images:home` is in the home region alone, `images:bare` has nothing to run."""
    for region in REGIONS:
        there.ecr[region].repositories[ACCOUNT, "yard/images"] = {}
        there.ecr[region].push(ACCOUNT, "yard/images", "v1", entry_point=ENTRY)
    there.ecr[HOME].push(ACCOUNT, "yard/images", "home", entry_point=ENTRY)
    there.ecr[HOME].push(ACCOUNT, "yard/images", "bare")
    there.ecr[HOME].push(ACCOUNT, "yard/images", "arm", architecture="arm64", entry_point=ENTRY)
    nothing: dict[str, Any] = {"templates": {}, "groups": set(), "profiles": set(), "security_groups": {"sg-1"}}
    for region in TRAINING:
        place = describe_place(region)
        there.open_region(
            region,
            Catalogue(
                zones=tuple(one.name for one in place.zones),
                subnets={one.subnet: one.name for one in place.zones},
                images={IMAGE.id: (IMAGE.root_device, IMAGE.snapshot_gb)},
                **nothing,
            ),
        )
        there.directory.parameters[region, names.region_parameter("yard", region)] = encode(place).decode()
        there.directory.parameters[region, "/aws/service/x"] = IMAGE.id
    offered = encode(FileSystems(file_systems=FILE_SYSTEMS)).decode()
    there.directory.parameters[HOME, names.file_systems_parameter("yard", HOME)] = offered
    there.directory.secrets = {(HOME, SECRET): SECRET}
    there.prices.hourly = {"g5.xlarge": 1.25, "g4dn.xlarge": 0.5, "p3.2xlarge": 3.0}
    there.s3.write(BUCKET, f"{keys.UPLOADS}c.tar.gz", packed("./train.py"))


@contextmanager
def clusters(
    patch: pytest.MonkeyPatch, folder: Path, settings: JobSettings = SETTINGS, **more: Any
) -> Iterator[Account]:
    """A new account with clusters of both kinds; the settings of jobs stand in the file that a deploy packs."""
    file = folder / SETTINGS_FILE
    file.write_bytes(encode(settings))
    limits = replace(ENVIRONMENT.job_limits, instance_types=("g*", "p*", "trn1.*"))
    env = replace(
        ENVIRONMENT, jobs=str(file), job_limits=limits, kubernetes=LineCluster(name="lab", most_nodes=4), **more
    )
    for name, value in env.write().items():
        patch.setenv(name, value)
    made = Account()
    open_clusters(made)
    with made.connected():
        yield made
