"""Roles: moto names service-linked ones of Batch and ECS differently, and cannot list roles while another thread makes one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moto.iam.exceptions import InvalidInput
from moto.iam.models import SERVICE_NAME_CONVERSION, IAMBackend

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


def _create_once(original: Any, backend: Any, service_name: str, description: str, suffix: str) -> Any:
    """Refuses as IAM does what exists already."""
    name = LINKED.get(service_name, "") + (f"_{suffix}" if suffix else "")
    if any(role.name == name for role in backend.get_roles()):
        raise InvalidInput(f"Service role name {name} has been taken in this account, please try a different suffix.")
    return original(backend, service_name, description, suffix)
