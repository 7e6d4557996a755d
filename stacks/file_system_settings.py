"""Settings of the file systems that jobs may mount, and what keeps several of them from making sense together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Annotated, Literal

from contract.mounts import NAME_PATTERN, FileSystem, Kind
from stacks.blocks import Block
from stacks.forms import Form, Region

Name = Annotated[
    str,
    Form(
        f"^{NAME_PATTERN.pattern}$",
        "2 to 20 lower-case letters, digits and single hyphens, a letter first",
        longest=20,
    ),
]
Id = Annotated[str, Form(r"^fs-[0-9a-f]{8,40}$", "the id of a file system, such as fs-0123456789abcdef0")]
SecurityGroup = Annotated[str, Form(r"^sg-[0-9a-f]{8,17}$", "the id of a security group, such as sg-0123456789abcdef0")]
MountName = Annotated[
    str, Form(r"^[A-Za-z0-9_-]{0,8}$", "up to 8 letters, digits, _ and -, as FSx shows them; empty for none")
]
AccessPoint = Annotated[
    str,
    Form(r"^(fsap-[0-9a-f]{8,40})?$", "the id of an access point, such as fsap-0123456789abcdef0; empty for none"),
]


class FileSystemSettings(Block):
    """A file system of the account, in the network of one of the deployment's training regions."""

    name: Name
    """What requests call it, after its kind: `fsx:corpus`."""
    kind: Literal["fsx", "efs", "s3files"]
    """FSx for Lustre, EFS, or S3 Files."""
    region: Region
    """Where it lies: a training region."""
    id: Id
    """Its id."""
    security_group: SecurityGroup
    """The security group of its network interfaces. The region's stack adds one rule a port range to it, and takes it away again."""
    mount_name: MountName = ""
    """The mount name of an FSx for Lustre file system; the other kinds have none."""
    access_point: AccessPoint = ""
    """The access point of an EFS or S3 Files file system through which jobs mount it; empty for its root. FSx for Lustre has none."""

    def described(self, clients: str) -> FileSystem:
        """Returns what its region publishes of it; `clients` is the security group of its clients."""
        return FileSystem(
            name=self.name,
            kind=Kind(self.kind),
            id=self.id,
            clients=clients,
            mount_name=self.mount_name,
            access_point=self.access_point,
        )


def problems(file_systems: Sequence[FileSystemSettings], training: Collection[str]) -> Iterator[str]:
    """Says what does not fit; `training` are the regions in which jobs run."""
    for name, count in Counter(one.name for one in file_systems).items():
        if count > 1:
            yield f"file_systems names {name} twice"
    for region in dict.fromkeys(one.region for one in file_systems):
        if region not in training:
            yield f"file_systems: {region} is not a training region; allowed: {', '.join(training)} (regions with a cidr or a vpc)"
    for one in file_systems:
        lustre = one.kind == Kind.FSX.value
        if lustre and not one.mount_name:
            yield f"file_systems: {one.name} has no mount_name; allowed: the one that FSx shows of {one.id}"
        if not lustre and one.mount_name:
            yield f"file_systems: {one.name} has a mount_name; allowed: none, because only FSx for Lustre has one"
        if lustre and one.access_point:
            yield f"file_systems: {one.name} has an access_point; allowed: none, because FSx for Lustre has none"
