"""The deployment behind the examples of refused grids."""

from __future__ import annotations

from contract import names
from contract.environments import GridLimits
from stacks.grid_settings import GridLimitSettings

ACCOUNT, CONTAINERS = "111122223333", "763104351884"
REGIONS = ("eu-central-1", "us-east-1", "us-west-2", "ap-south-1")
HOME = REGIONS[0]
BUCKET = f"yard-home-{ACCOUNT}-{HOME}"
DATA = {"data-eu": "eu-central-1", "data-us": "us-east-1", "data-west": "us-west-2", "data-ap": "ap-south-1"}
DATA_BUCKETS = (*DATA, "partner", "retired")
CHILD = names.child_image_tag("0" * 64)
DEFAULTS = {"image": "images:v1", "instance_type": "ml.g5.xlarge"}
MANIFEST = f"s3://{BUCKET}/uploads/manifest"
LIMITS: GridLimits = GridLimitSettings(instance_types=("ml.g5.*", "ml.m5.*"))


def bytes_bucket(region: str) -> str:
    return names.bytes_bucket("yard", ACCOUNT, region)


def execution(name: str = "sweep-7", started_at: str = "2026-11-21T10:00:00.000Z") -> dict[str, str]:
    arn = f"arn:aws:states:{HOME}:{ACCOUNT}:execution:{names.grid_machine('yard')}:{name}"
    return {"arn": arn, "name": name, "started_at": started_at}
