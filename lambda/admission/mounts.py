"""Decides about the file systems that a request mounts: whether its regions have them, and whether their folders hide anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from contract.containers import FOLDERS
from contract.mounts import MOST, NAME_PATTERN, FileSystem, JobMount, Kind
from refusals.wording import plain

FROM = f"^({'|'.join(Kind)}):{NAME_PATTERN.pattern}$"
AT = r"^(/[A-Za-z0-9._-]+)+$"
MOST_PATH = 200
"""The most characters of a path."""
KEPT = (
    FOLDERS,
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt/amazon",
    "/opt/aws",
    "/opt/dlami",
    "/opt/pytorch",
    "/opt/trainyard",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/var",
)
"""Folders of the machine, of an image or of the job: nothing may be mounted there, below them or above them."""
SHARED = ("/home", "/tmp")  # noqa: S108 (nothing is written there)
"""Nothing may be mounted there or above them; below them something may."""
SHAPE = '{"from": "fsx:corpus", "at": "/data", "read_only": true}'
MOUNTS_MAY_BE = f"a list of up to {MOST} objects of from, at and read_only, as in {SHAPE}"
MOUNT_MAY_BE = (
    f"from ({', '.join(f'{kind.value}:NAME' for kind in Kind)}), at (an absolute path, as in /data), and read_only (true, or "
    "false to write)"
)


def _path(value: str) -> str:
    if {".", ".."} & set(value.split("/")):
        raise ValueError(f"{plain(value)} has . or .. in it; allowed: an absolute path without them, as in /data")
    for kept in KEPT:
        if value == kept or nested(value, kept) or nested(kept, value):
            raise ValueError(f"{plain(value)} would hide or lie in {kept}; allowed: a folder of its own, as in /data")
    for shared in SHARED:
        if value == shared or nested(shared, value):
            raise ValueError(f"{plain(value)} would hide {shared}; allowed: a folder of its own, as in {shared}/data")
    return value


def nested(inner: str, outer: str) -> bool:
    """Whether one path lies below the other."""
    return inner.startswith(f"{outer}/")


class MountField(BaseModel):
    """A file system of the settings, and the folder in which every node has it."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    source: Annotated[str, Field(pattern=FROM)] = Field(
        alias="from",
        description="Kind and name of a file system of the deployment's setting file_systems.",
        examples=["fsx:corpus", "efs:home", "s3files:images"],
    )
    at: Annotated[str, Field(pattern=AT, max_length=MOST_PATH), AfterValidator(_path)] = Field(
        description="Absolute path of the folder, the same in a container and without one.", examples=["/data"]
    )
    read_only: bool = Field(default=True, description="Whether nodes may only read it.")


def problems(mounts: Iterable[MountField]) -> list[str]:
    """Rejects two mounts of which one would hide the other."""
    found, before = list[str](), list[str]()
    for number, one in enumerate(mounts):
        for other in before:
            if one.at == other or nested(one.at, other) or nested(other, one.at):
                how = "the folder of another mount" if one.at == other else f"above or below {other} of another mount"
                found.append(f"mounts.{number}.at: {plain(one.at)} is {how}; allowed: folders apart from each other")
        before.append(one.at)
    return found


def region_problems(mounts: Iterable[MountField], region: str, file_systems: Iterable[FileSystem]) -> list[str]:
    """What stands against the region because it lacks a file system."""
    there = {one.address for one in file_systems}
    listed = ", ".join(sorted(there)) or "none there"
    return [
        f"mounts.{number}.from: {one.source} is no file system in {region}; allowed: {listed} (file_systems in cdk.json)"
        for number, one in enumerate(mounts)
        if one.source not in there
    ]


def chosen(mounts: Iterable[MountField], offered: Mapping[str, Iterable[FileSystem]]) -> tuple[JobMount, ...]:
    """The job's mounts, without those of which no region has the file system. `offered`: by region; a name stands for one file system of
    one region."""
    found = {one.address: (region, one) for region, file_systems in offered.items() for one in file_systems}
    return tuple(
        JobMount(file_system=found[one.source][1], region=found[one.source][0], at=one.at, read_only=one.read_only)
        for one in mounts
        if one.source in found
    )


def told(mounts: Iterable[JobMount]) -> list[str]:
    """The mounts for people."""
    return [f"{one.file_system.address} at {one.at}, {'read only' if one.read_only else 'to write'}" for one in mounts]
