"""Checks the account's default key for EBS volumes: with a customer's own key our launches would fail late and without a clear reason."""

from __future__ import annotations

MANAGED = "alias/aws/ebs"
"""AWS's managed key for EBS volumes. Its own policy lets everyone who may launch use it."""


def problems(key: str, region: str, own: str = "") -> list[str]:
    """Rejects a region whose default key is a customer's. `key` is EC2's answer; empty means that EC2 does not say, and is accepted.
    With a key of the deployment's `own` launches name that key, and the default does not matter.

    With a customer's key EC2 accepts the launch and ends the machines as they start (Client.InternalError), unless the launching
    role may use that key. A function's role may not, and the job would spend its attempts without learning the reason.
    """
    if own or not key or key.endswith(MANAGED):
        return []
    return [
        f"region: in {region} the account encrypts volumes under a key of its own ({key}), which launches may not use; "
        f"allowed: a region whose default key is {MANAGED} (aws ec2 reset-ebs-default-kms-key-id --region {region})"
    ]
