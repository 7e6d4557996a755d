"""Chooses the nodes' disks: their size, and what they can do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from aws.facts import Object
from contract import volumes
from contract.jobs import Ami
from contract.limits import Limits
from job_checks.ladder import Ladder, PlacedRequest
from job_checks.resolve import ResolvedRequest
from job_requests.reading import list_allowed
from refusals.archive import Listing
from refusals.wording import plain

GIB = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The root disk of each node."""

    gb: int
    iops: int
    throughput: int
    """MiB/s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedRequest:
    """A placed request with the disk of its nodes."""

    resolved: ResolvedRequest
    ladder: Ladder
    disk: Disk
    disk_problems: list[str]


def add_disk(placed: PlacedRequest) -> SizedRequest:
    """Chooses the disk on which every machine image of the ladder fits, and beside it the code and the container's image."""
    resolved = placed.resolved
    gb, limits = resolved.request.volume_gb, resolved.env.limits
    code, room = count_code_bytes(resolved.facts.code, resolved.facts.archive), resolved.image.room
    images = [rung.image for rung in placed.ladder.rungs]
    return SizedRequest(
        resolved=resolved,
        ladder=placed.ladder,
        disk=choose_disk(gb, limits, images, code + room),
        disk_problems=[*check_size(gb, limits, code), *_check_room(gb, room)],
    )


def choose_disk(gb: int | None, limits: Limits, images: Iterable[Ami], beside: int) -> Disk:
    """Chooses the disk of a request that names `gb` GiB, None for the default.

    The default grows with what is known: every image fits, and `beside` the largest one so many bytes, as far as the deployment's limit
    lets it. The disk gets as many IOPS and as much throughput of the settings as its size takes.
    """
    snapshot = max((image.snapshot_gb for image in images), default=0)
    needed = min(snapshot + beside // GIB, limits.max_volume_gb)
    # A size above the limit is refused beside this, and may have more digits than any float.
    size = min(gb, limits.max_volume_gb) if gb is not None else max(limits.volume_gb, snapshot, needed)
    iops, throughput = volumes.fitted(size, limits.volume_iops, limits.volume_throughput)
    return Disk(gb=size, iops=iops, throughput=throughput)


def count_code_bytes(code: Object | None, archive: Listing | None) -> int:
    """Returns the bytes that a node certainly holds before the command starts: the archive, and its files beside it."""
    return (code.size if code else 0) + (archive.size if archive else 0)


def check_size(gb: int | None, limits: Limits, code: int) -> list[str]:
    """Rejects a size above the deployment's limit, and one that the `code` bytes alone fill."""
    if gb is None:
        return []
    if gb > limits.max_volume_gb:
        return [f"volume_gb: {plain(str(gb))} is too large; allowed: {list_allowed(limits)['volume_gb']}"]
    if gb * GIB < code:
        return [
            f"volume_gb: {gb} is too small for the code, which takes {code / GIB:.1f} GiB, packed and unpacked; "
            f"allowed: more than {code // GIB}, and room for the image and the checkpoints"
        ]
    return []


def _check_room(gb: int | None, room: int) -> list[str]:
    """Rejects a size that the container's image alone fills; `room` is what the image takes, in bytes."""
    if gb is None or gb * GIB > room:
        return []
    return [
        f"volume_gb: {gb} is too small for the container's image, which takes about {room / GIB:.1f} GiB, packed and unpacked; "
        f"allowed: more than {room // GIB}, and room for the machine's image, the code and the checkpoints"
    ]
