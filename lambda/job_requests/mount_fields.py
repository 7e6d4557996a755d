"""The file systems that a request mounts: which of the settings', in which folders; those of others hide nothing."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from contract.containers import FOLDERS
from contract.mounts import MOST, NAME_PATTERN, Kind
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
