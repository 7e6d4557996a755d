"""Words EC2's reasons for an instance's end, with what they leave unsaid: a disk's key that may not be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types_boto3_ec2.type_defs import StateReasonTypeDef

UNSAID = "Client.InternalError"
"""EC2's code, with "Client error on launch", for an instance whose disks it could not encrypt; other causes are rare."""
OF_KEYS = "kms"
"""In the codes that name a key, as Client.InvalidKMSKey.InvalidState."""
HINT = (
    "; as a rule the launcher's role, or for spot AWSServiceRoleForEC2Spot, may not use the key of its disks, or the key is disabled "
    "(docs/guides/landing-zones.md)"
)


def word_reason(reason: StateReasonTypeDef) -> str:
    """Returns the message of a StateReason; empty where there is none."""
    code, message = reason.get("Code", ""), reason.get("Message", "")
    return f"{message or code}{HINT}" if code == UNSAID or OF_KEYS in code.lower() else message
