"""Says how `mount` is to mount a file system: facts in, a list of arguments out. No shell reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from contract.mounts import JobMount, Kind

PROFILE = "trainyard"
"""The profile of root's AWS credentials that has the credentials of the job."""
PACKAGES: Mapping[Kind, str] = {
    Kind.FSX: "the Lustre client (lustre-client, with modules for the machine's kernel)",
    Kind.EFS: "amazon-efs-utils",
    Kind.S3FILES: "amazon-efs-utils, version 3.0 or newer",
}
"""What brings it."""
MEANING: Mapping[str, str] = {
    "nodev": "Device files on the file system have no effect.",
    "nosuid": "A program on it runs with the rights of whoever starts it, not of its owner.",
    "ro": "Only where the request says `read_only`: nothing can be written.",
    "relatime": "FSx for Lustre: reading a file writes its time of access once a day.",
    "flock": "FSx for Lustre: locks of files hold on all nodes.",
    "tls": "EFS: encrypted on its way. S3 Files always is.",
    "iam": "EFS: the file system asks IAM who mounts it. S3 Files always does.",
    "awsprofile": "EFS and S3 Files: the profile with the credentials of the job, not the node's role.",
    "region": "EFS and S3 Files: where the file system lies.",
    "accesspoint": "EFS and S3 Files: the access point of the settings, where there is one.",
    "nodirects3read": "S3 Files: all reads go through the file system; read from the bucket itself, they would need rights on it.",
}
"""What each option means that the agent gives to `mount`."""


def command(mount: JobMount, target: Path, partition: str) -> list[str]:
    """Returns the whole command."""
    options = [*_of_its_kind(mount), "nodev", "nosuid", *(["ro"] if mount.read_only else [])]
    return ["mount", "-t", mount.file_system.kind.type, "-o", ",".join(options), source(mount, partition), str(target)]


def helper(kind: Kind) -> str:
    """Returns the program that `mount` runs."""
    return f"mount.{kind.type}"


def source(mount: JobMount, partition: str) -> str:
    """Returns what is mounted, as `mount` names it. The DNS name of a Lustre file system follows from its id."""
    one = mount.file_system
    if one.kind is not Kind.FSX:
        return f"{one.id}:/"
    suffix = "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"
    return f"{one.id}.fsx.{mount.region}.{suffix}@tcp:/{one.mount_name}"


def _of_its_kind(mount: JobMount) -> list[str]:
    one = mount.file_system
    if one.kind is Kind.FSX:
        return ["relatime", "flock"]
    own = ["tls", "iam"] if one.kind is Kind.EFS else ["nodirects3read"]
    point = [f"accesspoint={one.access_point}"] if one.access_point else []
    return [*own, f"awsprofile={PROFILE}", f"region={mount.region}", *point]
