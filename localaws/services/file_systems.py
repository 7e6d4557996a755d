"""Where file systems of the local account lie: what EFS and FSx say of them, which moto does not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from localaws.api import Service
from localaws.machines.file_systems import FileSystem, known
from localaws.model import Refused

if TYPE_CHECKING:
    from localaws.recorder import Call
    from localaws.server import LocalAws

ADDRESS = "10.70.0.10"


class Placed:
    """The file systems of one region, in the network of a stack if there is one: a person makes them for the machines that run there."""

    def __init__(self, aws: LocalAws, region: str) -> None:
        self._aws, self._region = aws, region

    def answer(self, operation: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if operation == "DescribeMountTargets":
            one = self._find(params["FileSystemId"])
            target = {"MountTargetId": f"fsmt-{one.id[3:]}", "FileSystemId": one.id, "SubnetId": "subnet-0"}
            return {
                "MountTargets": [
                    target | {"LifeCycleState": "available", "VpcId": self._network(), "IpAddress": ADDRESS}
                ]
            }
        if operation == "DescribeFileSystems":
            found = [self._find(identity) for identity in params["FileSystemIds"]]
            return {"FileSystems": [{"FileSystemId": one.id, "VpcId": self._network()} for one in found]}
        raise Refused("BadRequest", f"The model of file systems has no {operation}")

    def _find(self, identity: str) -> FileSystem:
        here = (one for one in known(self._aws.work) if (one.id, one.region) == (identity, self._region))
        if (found := next(here, None)) is None:
            raise Refused("FileSystemNotFound", f"File system '{identity}' does not exist.", 404)
        return found

    def _network(self) -> str:
        networks = self._aws.client("ec2", self._region).describe_vpcs()["Vpcs"]
        return str(min(networks, key=lambda one: one["IsDefault"])["VpcId"])


class FileSystems(Service[Placed]):
    """IAM's name of a service is not always botocore's."""

    def __init__(self, aws: LocalAws, name: str, signed_as: str) -> None:
        super().__init__(aws, name, lambda region: Placed(aws, region), invalid="BadRequest")
        self._signed_as = signed_as

    def takes(self, call: Call) -> bool:
        return call.service == self._signed_as


def install(aws: LocalAws) -> None:
    FileSystems(aws, "efs", "elasticfilesystem")
    FileSystems(aws, "fsx", "fsx")
