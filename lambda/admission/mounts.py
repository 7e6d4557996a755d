"""Reads and resolves the file systems that a request mounts: its regions have to have them, and their folders may hide nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
        raise ValueError(f"{plain(value)} contains . or ..; allowed: an absolute path without them, as in /data")
    for kept in KEPT:
        if value == kept or is_below(value, kept) or is_below(kept, value):
            raise ValueError(f"{plain(value)} would hide or lie in {kept}; allowed: a folder of its own, as in /data")
    for shared in SHARED:
        if value == shared or is_below(shared, value):
            raise ValueError(f"{plain(value)} would hide {shared}; allowed: a folder of its own, as in {shared}/data")
    return value


def is_below(inner: str, outer: str) -> bool:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedMounts:
    """The file systems that a request mounts, and what stands against them."""

    mounted: tuple[JobMount, ...]
    """Without those that no region has."""
    against: Mapping[str, list[str]]
    """Region to what stands against it because it lacks a file system."""
    problems: list[str]


def resolve_mounts(mounts: Sequence[MountField], offered: Mapping[str, Iterable[FileSystem]]) -> ResolvedMounts:
    """Finds each mount's file system. `offered`: by region, of those that were asked; a name stands for one file system of one region."""
    found = {one.address: (region, one) for region, file_systems in offered.items() for one in file_systems}
    mounted = tuple(
        JobMount(file_system=found[one.source][1], region=found[one.source][0], at=one.at, read_only=one.read_only)
        for one in mounts
        if one.source in found
    )
    against = {region: _list_missing(mounts, region, file_systems) for region, file_systems in offered.items()}
    return ResolvedMounts(mounted=mounted, against=against, problems=_list_overlaps(mounts))


def _list_missing(mounts: Iterable[MountField], region: str, file_systems: Iterable[FileSystem]) -> list[str]:
    there = {one.address for one in file_systems}
    listed = ", ".join(sorted(there)) or "none there"
    return [
        f"mounts.{number}.from: {one.source} names no file system in {region}; allowed: {listed} (file_systems in cdk.json)"
        for number, one in enumerate(mounts)
        if one.source not in there
    ]


def _list_overlaps(mounts: Iterable[MountField]) -> list[str]:
    """Rejects two mounts of which one would hide the other."""
    found, before = list[str](), list[str]()
    for number, one in enumerate(mounts):
        for other in before:
            if one.at == other or is_below(one.at, other) or is_below(other, one.at):
                how = "the folder of another mount" if one.at == other else f"above or below {other} of another mount"
                found.append(f"mounts.{number}.at: {plain(one.at)} is {how}; allowed: separate folders")
        before.append(one.at)
    return found


def describe_mounts(mounts: Iterable[JobMount]) -> list[str]:
    """Says in the execution's output what each node has where."""
    return [f"{one.file_system.address} at {one.at}, {'read only' if one.read_only else 'to write'}" for one in mounts]
