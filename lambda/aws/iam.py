"""Every IAM call of the functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from aws.clients import client
from contract.aws_errors import code_of

if TYPE_CHECKING:
    from types_boto3_iam.client import IAMClient

TAKEN = "has been taken"
"""In IAM's InvalidInput, where the role exists already: it was created since we looked."""


def ensure_service_role(service: str, role: str) -> bool:
    """The service-linked role `role` of `service` is there afterwards. Returns whether this call made it."""
    iam: IAMClient = client("iam")
    try:
        iam.get_role(RoleName=role)
        return False
    except ClientError as problem:
        if code_of(problem) != "NoSuchEntity":
            raise
    try:
        iam.create_service_linked_role(AWSServiceName=service)
    except ClientError as problem:
        error = problem.response["Error"]
        if error["Code"] != "InvalidInput" or TAKEN not in error.get("Message", ""):
            raise
        return False
    return True
