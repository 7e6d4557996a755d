"""What Plan finds in AWS for lines that become jobs: regions that train, types, machine images, and images of containers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from contract import keys, names
from contract.codec import encode
from contract.job_settings import SETTINGS_FILE, JobSettings
from contract.mounts import FileSystems
from contract.places import Place, Zone
from contract.timing import Timing
from tests.archives import packed
from tests.builders import FILE_SYSTEMS, IMAGE
from tests.fakes.aws import Aws
from tests.fakes.ec2_catalogue import Catalogue
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


def open_clusters(there: Aws, digest: str) -> None:
    """Adds what a job needs; the image of this digest has an entry point. `images:home` is in the home region alone, `images:bare` has
    nothing to run, and `images:arm` is for other processors."""
    for region in REGIONS:
        registry = there.ecr[region]
        registry.manifests[digest] = registry.manifests[registry.push(ACCOUNT, "yard/any", "v1", entry_point=ENTRY)]
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
    there.prices.hourly |= {"g5.xlarge": 1.25, "g4dn.xlarge": 0.5, "p3.2xlarge": 3.0}
    there.s3.write(BUCKET, f"{keys.UPLOADS}c.tar.gz", packed("./train.py"))


@contextmanager
def job_settings(settings: JobSettings = SETTINGS) -> Iterator[str]:
    """The file that a deploy packs."""
    with TemporaryDirectory() as folder:
        file = Path(folder, SETTINGS_FILE)
        file.write_bytes(encode(settings))
        yield str(file)
