"""What AWS answered to the questions about a manifest's lines, and what a checked manifest comes to."""

from __future__ import annotations

from dataclasses import dataclass, field

from contract.grid import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketPlace:
    """Where a bucket lies."""

    region: str = ""
    denied: str = ""
    """The error code with which S3 refused to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """Whether something is there."""

    there: bool
    denied: str = ""
    """The error code of a look that was refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Bytes at a location."""

    bytes: int
    whole: bool
    """Without it there is more: so many objects are not counted."""


@dataclass(slots=True)
class Answers:
    """Each thing once, however many lines need it."""

    buckets: dict[str, BucketPlace] = field(default_factory=dict)
    locations: dict[str, Stand] = field(default_factory=dict)
    sizes: dict[str, Size] = field(default_factory=dict)
    images: dict[str, Stand] = field(default_factory=dict)
    prices: dict[str, float | None] = field(default_factory=dict)
    """Dollars an hour and instance, by `price_key`."""

    def region(self, address: str) -> str:
        """Of an address' bucket; empty where that is not known."""
        place = self.buckets.get(bucket_of(address))
        return place.region if place else ""

    def hourly(self, region: str, instance_type: str) -> float | None:
        """Of one instance."""
        return self.prices.get(price_key(region, instance_type))


def bucket_of(address: str) -> str:
    """Of an address that was parsed before."""
    return address.removeprefix("s3://").partition("/")[0]


def price_key(region: str, instance_type: str) -> str:
    return f"{region} {instance_type}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedManifest:
    """What a checked manifest comes to, written before the first line is: a repeat of Plan writes the same lines."""

    execution: str
    started_at: str
    planned_at: float
    """UTC epoch seconds."""
    manifest: Manifest
    manifest_size: int
    """Bytes."""
    lines: int
    regions: dict[str, int]
    cost_at_most_usd: float | None
    warnings: tuple[str, ...]
    facts: Answers
