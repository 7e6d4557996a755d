"""Decides about the nodes' disks: their key, their size, and what they can do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from admission.reading import allowed
from aws.facts import Object
from contract import volumes
from contract.jobs import Ami
from contract.limits import Limits
from refusals.archive import Listing
from refusals.wording import plain

MANAGED = "alias/aws/ebs"
"""AWS's managed key for EBS volumes. Its own policy lets everyone who may launch use it."""
GIB = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The root disk of each node."""

    gb: int
    iops: int
    throughput: int
    """MiB/s."""


def disk(asked: int | None, limits: Limits, images: Iterable[Ami], brought: int) -> Disk:
    """Decides the disk of a request that asks for `asked` GiB, None for the default.

    The default grows with what is known: every image fits, and beside the largest one the `brought` bytes, as far as the
    deployment's limit lets it. The disk gets as many IOPS and as much throughput of the settings as its size takes.
    """
    snapshot = max((image.snapshot_gb for image in images), default=0)
    beside = min(snapshot + brought // GIB, limits.max_volume_gb)
    # A size above the limit is refused beside this, and may have more digits than any float.
    size = min(asked, limits.max_volume_gb) if asked is not None else max(limits.volume_gb, snapshot, beside)
    iops, throughput = volumes.fitted(size, limits.volume_iops, limits.volume_throughput)
    return Disk(gb=size, iops=iops, throughput=throughput)


def brought(code: Object | None, archive: Listing | None) -> int:
    """Returns the bytes that a node certainly holds before the command starts: the archive, and its files beside it."""
    return (code.size if code else 0) + (archive.size if archive else 0)


def size_problems(asked: int | None, limits: Limits, brought: int) -> list[str]:
    """Rejects a size above the deployment's limit, and one that the code alone fills."""
    if asked is None:
        return []
    if asked > limits.max_volume_gb:
        return [f"volume_gb: {plain(str(asked))} is too large; allowed: {allowed(limits)['volume_gb']}"]
    if asked * GIB < brought:
        return [
            f"volume_gb: {asked} is too small for the code, which takes {brought / GIB:.1f} GiB, packed and unpacked; "
            f"allowed: more than {brought // GIB}, and room for the image and the checkpoints"
        ]
    return []


def too_small_for(image: Ami, asked: int | None) -> list[str]:
    """Rejects a size below the image's snapshot, from which EC2 makes no smaller disk."""
    if asked is None or asked >= image.snapshot_gb:
        return []
    return [f"volume_gb: {asked} is too small for the image {image.id}; allowed: at least {image.snapshot_gb}"]


def image_problems(asked: int | None, room: int) -> list[str]:
    """Rejects a size that the container's image alone fills; `room` is what the image takes."""
    if asked is None or asked * GIB > room:
        return []
    return [
        f"volume_gb: {asked} is too small for the container's image, which takes about {room / GIB:.1f} GiB, packed and unpacked; "
        f"allowed: more than {room // GIB}, and room for the machine's image, the code and the checkpoints"
    ]


def problems(key: str, region: str, own: str = "", *, field: str = "region") -> list[str]:
    """Rejects a region whose default key is a customer's. `key` is EC2's answer; empty means that EC2 does not say, and is accepted.
    With a key of the deployment's `own` launches name that key, and the default does not matter.

    With a customer's key EC2 accepts the launch and ends the machines as they start (Client.InternalError), unless the launching
    role may use that key. A function's role may not, and the job would spend its attempts without learning the reason.
    """
    if own or not key or key.endswith(MANAGED):
        return []
    return [
        f"{field}: in {region} the account encrypts volumes under a key of its own ({key}), which launches may not use; "
        f"allowed: a region whose default key is {MANAGED} (aws ec2 reset-ebs-default-kms-key-id --region {region})"
    ]
