"""Every call about keys under which disks of nodes are encrypted."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from aws.clients import BRISK, client
from aws.key_facts import VolumeKey
from contract.aws_errors import code_of

GONE, DENIED = "NotFoundException", "AccessDeniedException"


def read_volume_key(key: str, region: str, spot_role: str) -> VolumeKey | None:
    """Returns what KMS says of a key (an ARN) of a region; None where there is none. One that this account may not describe is hidden:
    KMS says that of each key of another account whose policy does not name ours. Raises ClientError or BotoCoreError."""
    kms: Any = client("kms", region, BRISK)
    try:
        found = kms.describe_key(KeyId=key)["KeyMetadata"]
    except ClientError as problem:
        if code_of(problem) == GONE:
            return None
        if code_of(problem) == DENIED:
            return VolumeKey(hidden=str(problem))
        raise
    return VolumeKey(
        state=found["KeyState"],
        usage=found["KeyUsage"],
        spec=found["KeySpec"],
        spot=_is_granted(kms, key, spot_role),
    )


def _is_granted(kms: Any, key: str, role: str) -> bool | None:
    try:
        pages = kms.get_paginator("list_grants").paginate(KeyId=key, GranteePrincipal=role)
        return any(one.get("GranteePrincipal") == role for page in pages for one in page["Grants"])
    except (ClientError, BotoCoreError):
        return None
