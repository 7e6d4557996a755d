"""What IAM is asked for a call, in an account with a topic and a key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from localaws.iam.questions import requests
from localaws.iam.simulator import Request
from localaws.recorder import Call, Session

OWNER = "123456789012"
KEY = f"arn:aws:kms:eu-central-1:{OWNER}:key/1"
ROLE_ID = "AROAEXAMPLE"
OPEN = {"Version": "2012-10-17", "Statement": []}


class Account:
    """A topic with a key, and everything tagged alike."""

    def tags(self, region: str, resource: str) -> Mapping[str, str]:  # noqa: ARG002
        return {"owner": "us"}

    def role(self, profile: str) -> str:
        raise AssertionError(profile)

    def instance_profile(self, region: str, instance: str) -> str:  # noqa: ARG002
        return ""

    def template(self, region: str, template: str, version: str) -> Mapping[str, Any]:
        raise AssertionError(region + template + version)

    def image(self, region: str, image: str) -> Mapping[str, Any]:
        raise AssertionError(region + image)

    def secret(self, region: str, secret: str) -> str:
        return f"arn:aws:secretsmanager:{region}:{OWNER}:secret:{secret}-AbCdEf"

    def machine(self, region: str) -> str:
        raise AssertionError(region)

    def key(self, region: str, topic: str) -> str:  # noqa: ARG002
        return KEY

    def key_policy(self, key: str) -> Mapping[str, Any]:
        assert key == KEY
        return OPEN

    def trust(self, role: str) -> Mapping[str, Any]:
        raise AssertionError(role)

    def role_id(self, role: str) -> str:  # noqa: ARG002
        return ROLE_ID

    def table_keys(self, region: str, table: str) -> tuple[str, ...]:  # noqa: ARG002
        return "pk", "sk"


def questions_of(name: str, region: str, session: str = "", **parameters: Any) -> list[Request]:
    """What IAM is asked for the call `name`, such as `sns:Publish`, of a role's session."""
    service, action = name.split(":")
    call = Call(
        at=0.0,
        role=f"arn:aws:iam::{OWNER}:role/x",
        service=service,
        region=region,
        action=action,
        parameters=parameters,
        by=Session(role="", name=session),
    )
    return list(requests(call, Account()))
