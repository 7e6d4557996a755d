"""The key under which the account encrypts volumes by default: under one of its own, launches of ours would fail late and darkly."""

from __future__ import annotations

MANAGED = "alias/aws/ebs"
"""AWS's own key for volumes. Whoever may launch may use it, by its own policy."""


def problems(key: str, region: str) -> list[str]:
    """`key` as EC2 names the default key of a region; empty where it does not say, which is not a problem.

    With a customer's key EC2 takes the launch and ends the machines as they start (Client.InternalError), unless the launching
    role may use that key: the role of a function may not, and the attempts would be spent without a word of the reason.
    """
    if not key or key.endswith(MANAGED):
        return []
    return [
        f"region: in {region} the account encrypts volumes under a key of its own ({key}), which launches may not use; "
        f"allowed: a region whose default key is {MANAGED} (aws ec2 reset-ebs-default-kms-key-id --region {region})"
    ]
