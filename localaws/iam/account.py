"""What IAM knows about an account beside the recorded call; whoever judges calls supplies it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Account(Protocol):
    """What IAM knows about the account beside the call."""

    def tags(self, region: str, resource: str, /) -> Mapping[str, str]:
        """Returns tags of an EC2 resource, by id; of a placement group, by name."""

    def role(self, profile: str, /) -> str:
        """Returns the ARN of an instance profile's role, by the profile's ARN or name."""

    def instance_profile(self, region: str, instance: str, /) -> str:
        """Returns the ARN of an instance's profile, empty for none."""

    def template(self, region: str, template: str, version: str, /) -> Mapping[str, Any]:
        """Returns what a version of a launch template adds to a launch, as EC2 describes it."""

    def image(self, region: str, image: str, /) -> Mapping[str, Any]:
        """Returns a machine image as EC2 describes it."""

    def secret(self, region: str, secret: str, /) -> str:
        """Returns the ARN of a secret, by ARN or name."""

    def machine(self, region: str, /) -> str:
        """Returns the ARN of the state machine that issued these task tokens."""

    def key(self, region: str, topic: str, /) -> str:
        """Returns the ARN of the key that encrypts a topic's messages, empty for none."""

    def key_policy(self, key: str, /) -> Mapping[str, Any]:
        """Returns the policy of a key, by the key's ARN."""

    def trust(self, role: str, /) -> Mapping[str, Any]:
        """Returns the trust policy of a role, by the role's ARN."""

    def role_id(self, role: str, /) -> str:
        """Returns the id of a role, by its ARN: `AROA...`."""

    def table_keys(self, region: str, table: str, /) -> tuple[str, ...]:
        """Returns the names of a table's partition key and, where there is one, of its sort key."""
