"""Deep-learning AMIs: moto has none, and gives every image a volume of 15 GB."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from moto.ec2.models.amis import Ami

SYSTEM = r"(amazon-linux-2023|amazon-linux-2|ubuntu-2[024]\.04)"
PARAMETER = re.compile(
    r"/aws/service/deeplearning/ami/(?P<architecture>x86_64|arm64)/"
    rf"(?P<name>(base-)?(oss|proprietary)-nvidia-driver-gpu-([a-z0-9.]+-)*{SYSTEM})/latest/ami-id"
)
NEURON = re.compile(
    rf"/aws/service/neuron/dlami/(?P<name>(base|multi-framework|pytorch-[0-9.]+|jax-[0-9.]+)/{SYSTEM})/latest/image_id"
)
"""The public parameters that name the newest image of a family; those for Neuron devices are another team's."""
SNAPSHOT_GB = 75
"""Recent deep-learning images need volumes of 45 to 100 GB, the base ones the smallest."""
AMAZON = "898082745236"


class DeepLearningAmi(Ami):  # type: ignore[misc]
    """An image whose root volume has a deep-learning image's size."""

    @property
    def block_device_mappings(self) -> list[dict[str, Any]]:
        root = {
            "SnapshotId": self.ebs_snapshot.id,
            "VolumeSize": SNAPSHOT_GB,
            "DeleteOnTermination": True,
            "VolumeType": "gp3",
            "Encrypted": False,
        }
        return [{"DeviceName": self.root_device_name, "Ebs": root}]


def named_by(parameter: str, backend: Any) -> str | None:
    """Returns the id of the image that a public parameter names in the back end's region; None for a name that AWS does not have."""
    match = PARAMETER.fullmatch(parameter) or NEURON.fullmatch(parameter)
    if not match:
        return None
    image = "ami-" + hashlib.sha256(f"{backend.region_name}{parameter}".encode()).hexdigest()[:17]
    if image not in backend.amis:
        backend.amis[image] = DeepLearningAmi(
            backend,
            image,
            name=match["name"],
            description=f"Deep Learning AMI, {match['name']}",
            owner_id=AMAZON,
            owner_alias="amazon",
            public=True,
            virtualization_type="hvm",
            hypervisor="xen",
            architecture=match.groupdict().get("architecture", "x86_64"),
            root_device_type="ebs",
            root_device_name="/dev/sda1" if "ubuntu" in match["name"] else "/dev/xvda",
            region_name=f"{backend.region_name}a",
        )
    return image


def snapshot_gb(image: Any) -> int:
    """Returns the smallest size of a root volume of the image."""
    return int(image.block_device_mappings[0]["Ebs"]["VolumeSize"])
