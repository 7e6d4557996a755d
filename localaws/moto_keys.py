"""Finds what belongs to keys that moto hands out by itself: to sessions that a person begins, the CDK's roles among them, and to users."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Secret:
    """What belongs to an access key."""

    value: str
    token: str = ""
    """Of a session; empty for keys of a user."""


def find_secret(access_key: str) -> Secret | None:
    """Returns the secret of a key; None for keys that moto did not hand out."""
    from moto.iam.models import iam_backends

    for session in _sessions(access_key):
        return Secret(session.secret_access_key, session.session_token)
    for backend in _backends(iam_backends):
        for user in list(backend.users.values()):
            for one in user.access_keys:
                if one.access_key_id == access_key and one.status == "Active":
                    return Secret(one.secret_access_key)
    return None


def find_role(access_key: str) -> str:
    """Returns the ARN of the role whose session has this key; empty where there is none."""
    return next((str(session.role_arn) for session in _sessions(access_key)), "")


def _sessions(access_key: str) -> Iterator[Any]:
    from moto.sts.models import sts_backends

    for backend in _backends(sts_backends):
        yield from (one for one in list(getattr(backend, "assumed_roles", [])) if one.access_key_id == access_key)


def _backends(of_service: Any) -> Iterator[Any]:
    """Yields the backend of each account and region; other threads may add some."""
    for account in list(of_service.values()):
        yield from list(account.values())
