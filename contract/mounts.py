"""File systems that jobs may mount: how a setting describes one, what a request may call it, and what a job pins of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

NAME_PATTERN = re.compile(r"[a-z](-?[a-z0-9]){1,19}")
"""The form of the names in the setting `file_systems`, 20 characters at most."""
MOST = 4
"""Mounts of a job: a network interface has five security groups, and one of them is the job's own."""
MOST_OF_A_DEPLOYMENT = 10
"""File systems of the settings: a parameter of their region holds 4 KB, and the job role has a statement for each."""


class Kind(str, Enum):
    """What serves a file system; the word before the colon of `from`."""

    FSX = "fsx"
    EFS = "efs"
    S3FILES = "s3files"

    @property
    def type(self) -> str:
        """What `mount` calls it."""
        return "lustre" if self is Kind.FSX else self.value

    @property
    def ports(self) -> tuple[tuple[int, int], ...]:
        """TCP ports, from and to, on which clients reach it."""
        return ((988, 988), (1018, 1023)) if self is Kind.FSX else ((2049, 2049),)

    @property
    def calls_back(self) -> bool:
        """Whether servers open connections to clients, on the same ports: those of Lustre do."""
        return self is Kind.FSX

    @property
    def service(self) -> str:
        """The prefix of its actions and ARNs in IAM. Empty for Lustre, which knows no rights of IAM: whoever reaches it may mount it."""
        return {Kind.FSX: "", Kind.EFS: "elasticfilesystem", Kind.S3FILES: "s3files"}[self]

    def actions(self, *, read_only: bool) -> tuple[str, ...]:
        """What a mount needs; empty where IAM has no say."""
        if not self.service:
            return ()
        return (f"{self.service}:ClientMount", *(() if read_only else (f"{self.service}:ClientWrite",)))

    @classmethod
    def of_later_version(cls) -> Kind:
        """IAM knows no right of it, so no session gets one that was not meant."""
        return cls.FSX


SERVICES = tuple(kind.service for kind in Kind if kind.service)
"""Prefixes of all rights that mounts may need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """A file system of the settings, as its region describes it."""

    name: str
    kind: Kind
    id: str
    clients: str
    """Security group that lets its members reach the file system, and nothing else."""
    mount_name: str = ""
    """Lustre's name of the file system; empty for other kinds."""
    access_point: str = ""
    """Id of the access point through which it is mounted; empty for none, and for Lustre."""

    @property
    def address(self) -> str:
        """What a request writes into `from`."""
        return f"{self.kind.value}:{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystems:
    """What jobs of a region may mount. JSON in the SSM parameter `names.file_systems_parameter`; a region without any has none."""

    file_systems: tuple[FileSystem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMount:
    """A file system in the folders of every node of a job."""

    file_system: FileSystem
    region: str
    """Of the file system, and so of the nodes."""
    at: str
    """Absolute path."""
    read_only: bool

    def arn(self, partition: str, account: str) -> str:
        """Returns the ARN of the file system, of a kind of which IAM knows rights."""
        return arn(self.file_system.kind, self.file_system.id, partition=partition, region=self.region, account=account)


def arn(kind: Kind, id: str, *, partition: str, region: str, account: str) -> str:
    """Returns the ARN of a file system of a kind of which IAM knows rights."""
    return f"arn:{partition}:{kind.service}:{region}:{account}:file-system/{id}"
