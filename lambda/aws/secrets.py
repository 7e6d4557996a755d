"""Every Secrets Manager call of the functions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from aws.clients import client
from contract.aws_errors import code_of

if TYPE_CHECKING:
    from types_boto3_secretsmanager.client import SecretsManagerClient


def exists(arn: str, region: str) -> bool:
    """Whether there is a secret of this ARN that exists and that we may describe; its value is never read here."""
    secrets: SecretsManagerClient = client("secretsmanager", region)
    try:
        return "DeletedDate" not in secrets.describe_secret(SecretId=arn)
    except ClientError as problem:
        if code_of(problem) in {"ResourceNotFoundException", "AccessDeniedException"}:
            return False
        raise


def value(name: str) -> str:
    """The text of a secret of the home region, empty where it has none; raises ClientError. For a token of the settings: secrets of jobs
    are read on nodes alone."""
    secrets: SecretsManagerClient = client("secretsmanager")
    return secrets.get_secret_value(SecretId=name).get("SecretString", "").strip()


def read_password(secret: str) -> str:
    """The password in a secret of a database's role. Raises ClientError, and ValueError without a word of what the secret has."""
    try:
        password = json.loads(value(secret))["password"]
    except (ValueError, LookupError, TypeError):
        password = None
    if not isinstance(password, str):
        raise ValueError("the secret has no password; allowed: JSON with username and password") from None
    return password
