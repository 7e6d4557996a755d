"""File systems of the local account: folders of this computer, which the stand-in for `mount` shows to machines that reach them.

A machine reaches one where the security groups of both let it: that is looked up when it boots.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FOLDER = "file-systems"
"""Below the local AWS's working folder: a folder for each id, with its files in DATA, and what is known of it in ABOUT."""
DATA, ABOUT = "data", "about.json"
REACHED = "var/lib/cloud/instance/reached.json"
"""On a machine: the ids of the file systems to which its network leads."""
PORTS: Mapping[str, Sequence[int]] = {"lustre": (988, 1018, 1023), "efs": (2049,), "s3files": (2049,)}


@dataclass(frozen=True, kw_only=True)
class FileSystem:
    """What servers know of one."""

    id: str
    type: str
    """As `mount` calls it: `lustre`, `efs` or `s3files`."""
    region: str
    security_group: str
    mount_name: str = ""
    """Lustre's."""
    access_point: str = ""
    """The only one, empty for none."""
    closed: bool = False
    """Whether its policy lets nobody in."""


def make(aws: Any, work: Path, region: str, type: str) -> FileSystem:
    """Makes one with a security group that lets nobody in. `aws` is the local AWS, `work` its working folder."""
    ec2 = aws.client("ec2", region)
    group = ec2.create_security_group(GroupName=f"files-{secrets.token_hex(4)}", Description="A file system")["GroupId"]
    mount_name = secrets.token_hex(4) if type == "lustre" else ""
    made = FileSystem(
        id=f"fs-{secrets.token_hex(8)}0", type=type, region=region, security_group=group, mount_name=mount_name
    )
    keep(work, made)
    return made


def keep(work: Path, one: FileSystem) -> Path:
    """Registers it; returns the folder of its files."""
    folder = work / FOLDER / one.id
    (folder / DATA).mkdir(parents=True, exist_ok=True)
    (folder / ABOUT).write_text(json.dumps(asdict(one)))
    return folder / DATA


def known(work: Path) -> list[FileSystem]:
    """All of the account."""
    return [FileSystem(**json.loads(about.read_text())) for about in sorted((work / FOLDER).glob(f"*/{ABOUT}"))]


def reached(aws: Any, work: Path, region: str, groups: Iterable[str]) -> list[str]:
    """The ids of those that a machine with these security groups reaches."""
    there = [one for one in known(work) if one.region == region]
    if not there:
        return []
    ids = [*dict.fromkeys([*groups, *(one.security_group for one in there)])]
    found = aws.client("ec2", region).describe_security_groups(GroupIds=ids)["SecurityGroups"]
    rules = {one["GroupId"]: one for one in found}
    return [
        one.id
        for one in there
        if all(
            any(_leads(rules[group], rules[one.security_group], port) for group in groups) for port in PORTS[one.type]
        )
    ]


def _leads(client: Mapping[str, Any], server: Mapping[str, Any], port: int) -> bool:
    out = _names(client["IpPermissionsEgress"], server["GroupId"], port)
    return out and _names(server["IpPermissions"], client["GroupId"], port)


def _names(rules: Iterable[Mapping[str, Any]], group: str, port: int) -> bool:
    return any(
        rule["IpProtocol"] == "tcp"
        and rule["FromPort"] <= port <= rule["ToPort"]
        and any(pair["GroupId"] == group for pair in rule["UserIdGroupPairs"])
        for rule in rules
    )
