"""EC2: the model (ec2_model) over moto's network, images and types, with processes as machines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import DependencyViolationError
from moto.ec2.models.security_groups import SecurityGroupBackend
from moto.ec2.models.subnets import SubnetBackend
from moto.ec2.responses.elastic_block_store import ElasticBlockStore
from moto.kms import kms_backends

from localaws.api import Service
from localaws.machines.nodes import Nodes
from localaws.services import ec2_groups
from localaws.services.ec2_machines import Machines, Region
from localaws.services.ec2_model import OURS
from localaws.services.ec2_parts import OPERATIONS

if TYPE_CHECKING:
    from localaws.recorder import Call
    from localaws.server import LocalAws

AMI = Path(__file__).parents[2] / "build" / "ami"
"""The stand-in for the deep-learning AMI, which `localaws.machines.image` makes."""
OF_THE_MODEL = frozenset(OPERATIONS) | {
    "RunInstances",
    "DescribeInstances",
    "DescribeIamInstanceProfileAssociations",
    "TerminateInstances",
    "GetConsoleOutput",
    "DescribeSpotPriceHistory",
    "DescribeCapacityReservations",
    "DescribeAvailabilityZones",
    *ec2_groups.OPERATIONS,
}
OF_TAGS = frozenset({"CreateTags", "DeleteTags", "DescribeTags"})
"""moto answers these calls for networks, templates and groups, which the model does not have."""
MANAGED_KEY = "alias/aws/ebs"
_current: list[Nodes] = []


class Instances(Service[Region]):
    """The calls that the model answers; moto answers all others."""

    def takes(self, call: Call) -> bool:
        if call.service != "ec2":
            return False
        named = [value for name, value in call.parameters.items() if name.startswith(("ResourceId.", "Filter."))]
        ours = call.action in OF_TAGS and any(OURS.fullmatch(str(value)) for value in named)
        return ours or call.action in OF_THE_MODEL


def install(aws: LocalAws, *, ami: Path = AMI) -> None:
    """Installs the model until `aws.stop()`; nodes run in `aws.work / "nodes"`, and end with `machines().stop()`."""
    machines = Machines(aws)
    Instances(aws, "ec2", machines.open_region, invalid="InvalidParameterValue")
    aws.patch(ElasticBlockStore, "get_ebs_default_kms_key_id", _default_key)
    _keep_what_is_used(aws, machines)
    _current[:] = [Nodes(aws, machines, folder=aws.work / "nodes", ami=ami)]


def _keep_what_is_used(aws: LocalAws, machines: Machines) -> None:
    """Refuses, as EC2 does, to delete a subnet or security group with an instance's interface; moto deletes it."""

    def refuse(region: str, identity: str | None) -> None:
        if identity and region in machines.regions and machines.regions[region].parts.hold(identity):
            raise DependencyViolationError(f"'{identity}' has dependencies and cannot be deleted.")

    def subnet(original: Any, backend: Any, subnet_id: str) -> Any:
        with machines.lock:
            refuse(backend.region_name, subnet_id)
            return original(backend, subnet_id)

    def group(original: Any, backend: Any, name: str | None = None, group_id: str | None = None) -> Any:
        with machines.lock:
            named = backend.get_security_group_from_name(name) if name else None
            refuse(backend.region_name, group_id or (named.id if named else None))
            return original(backend, name, group_id)

    aws.wrap(SubnetBackend, "delete_subnet", subnet)
    aws.wrap(SecurityGroupBackend, "delete_security_group", group)


def nodes() -> Nodes:
    """Returns the nodes of the local AWS that was installed last; raises LookupError if there is none."""
    if not _current:
        raise LookupError("localaws.services.ec2 is not installed")
    return _current[-1]


def machines() -> Machines:
    """Returns the instances of the local AWS that was installed last; raises LookupError if there is none."""
    return nodes().machines


def _default_key(self: Any) -> Any:
    """Returns AWS's own key, by its alias, until somebody sets another one."""
    backend = self.ec2_backend
    key, keys = backend.default_kms_key_id, kms_backends[backend.account_id][backend.region_name]
    own = key and MANAGED_KEY not in keys.describe_key(key).aliases
    return ActionResult({"KmsKeyId": key if own else MANAGED_KEY})
