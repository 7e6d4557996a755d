"""Roles and policies: moto names service-linked roles of Batch and ECS differently, cannot list roles while another thread makes one, and
keeps the managed policies of a stack that goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moto.iam.exceptions import InvalidInput
from moto.iam.models import SERVICE_NAME_CONVERSION, IAMBackend, ManagedPolicy, iam_backends
from moto.utilities.utils import get_partition

if TYPE_CHECKING:
    from localaws.server import LocalAws

LINKED = {"batch.amazonaws.com": "AWSServiceRoleForBatch", "ecs.amazonaws.com": "AWSServiceRoleForECS"}
"""The role that AWS makes for a service."""


def install(aws: LocalAws) -> None:
    for service, role in LINKED.items():
        SERVICE_NAME_CONVERSION[service.partition(".")[0]] = role.removeprefix("AWSServiceRoleFor")
    aws.wrap(IAMBackend, "create_service_linked_role", _create_once)
    # Stacks are made side by side, and each role is compared with all others.
    aws.wrap(IAMBackend, "get_roles", lambda original, backend: list(original(backend)))
    aws.wrap(ManagedPolicy, "delete_from_cloudformation_json", _delete_policy)


def _create_once(original: Any, backend: Any, service_name: str, description: str, suffix: str) -> Any:
    """Refuses as IAM does what exists already."""
    name = LINKED.get(service_name, "") + (f"_{suffix}" if suffix else "")
    if any(role.name == name for role in backend.get_roles()):
        raise InvalidInput(f"Service role name {name} has been taken in this account, please try a different suffix.")
    return original(backend, service_name, description, suffix)


def _delete_policy(_original: Any, arn: str, _properties: object, account: str, region: str) -> None:
    """Detaches a managed policy from its roles, as CloudFormation does, and deletes it."""
    backend = iam_backends[account][get_partition(region)]
    for role in [one for one in backend.get_roles() if arn in one.managed_policies]:
        backend.detach_role_policy(arn, role.name)
    backend.delete_policy(arn)
