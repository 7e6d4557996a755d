"""Holds AWS's answers to the questions about a manifest's lines, and the result of checking the manifest."""

from __future__ import annotations

from dataclasses import dataclass, field

from aws.facts import InstanceType
from contract.grid import Manifest
from refusals.script import Runner

NAMES, NAME = 4, 60
"""How many names that begin as an address does are looked at, the last only to know that there are more, and how many characters of each
are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketPlace:
    """The region of a bucket."""

    region: str = ""
    denied: str = ""
    """The error code with which S3 refused to say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """Whether something exists."""

    there: bool
    denied: str = ""
    """The error code with which a look was refused."""
    digest: str = ""
    """Of the image for which a short tag stands."""
    held: str = ""
    """Digest of what a registry has under the image's own address."""
    names: tuple[str, ...] = ()
    """The first objects and folders of S3 whose names begin so, where these are not one alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Bytes at a location."""

    bytes: int
    whole: bool
    """False: there are more objects than are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeStand:
    """One version of an archive of code, or why no line can run it."""

    problems: tuple[str, ...] = ()
    size: int = 0
    version: str = ""
    etag: str = ""


@dataclass(slots=True)
class Answers:
    """Each answer once, however many lines need it."""

    buckets: dict[str, BucketPlace] = field(default_factory=dict)
    locations: dict[str, Stand] = field(default_factory=dict)
    sizes: dict[str, Size] = field(default_factory=dict)
    images: dict[str, Stand] = field(default_factory=dict)
    codes: dict[str, CodeStand] = field(default_factory=dict)
    """By `CodeQuestion.key`."""
    prices: dict[str, float | None] = field(default_factory=dict)
    """Dollars per hour and instance, by `price_key`."""
    types: dict[str, InstanceType | None] = field(default_factory=dict)
    """EC2's types of lines on Kubernetes, in the home region; None for one that it does not have."""

    def region(self, address: str) -> str:
        """Returns the region of an address' bucket; empty where it is unknown."""
        place = self.buckets.get(bucket_of(address))
        return place.region if place else ""

    def hourly(self, region: str, instance_type: str) -> float | None:
        """Returns the price of one instance per hour."""
        return self.prices.get(price_key(region, instance_type))


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeQuestion:
    """Can lines run this archive?"""

    address: str
    wanted: str
    """The file that runs; empty where that cannot be known."""
    field: str
    """The field that says so."""
    by: Runner = Runner.READER

    @property
    def key(self) -> str:
        return f"{self.field} {self.by.value} {self.wanted} {self.address}"


def bucket_of(address: str) -> str:
    """Returns the bucket of an address that was parsed before."""
    return address.removeprefix("s3://").partition("/")[0]


def price_key(region: str, instance_type: str) -> str:
    return f"{region} {instance_type}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedManifest:
    """The result of checking a manifest, written before the first line, so that a repeat of Plan writes the same lines."""

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
