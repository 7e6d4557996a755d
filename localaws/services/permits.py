"""Evaluates resource policies as far as services need: whether a queue, a topic or a key admits an AWS service."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from localaws.model import listed


def lets(policy: str | Mapping[str, Any] | None, service: str, *actions: str) -> bool:
    """Whether the policy allows the service (`events.amazonaws.com`) every one of the actions.

    Treats conditions as met and ignores denials: our denials refuse requests without TLS.
    """
    document = json.loads(policy) if isinstance(policy, str) else policy or {}
    allowing = [one for one in listed(document.get("Statement", [])) if one["Effect"] == "Allow"]
    patterns = [
        pattern.lower()
        for one in allowing
        if _meets(one.get("Principal"), service)
        for pattern in listed(one["Action"])
    ]
    return all(any(fnmatchcase(action.lower(), pattern) for pattern in patterns) for action in actions)


def _meets(principal: Any, service: str) -> bool:
    """Whether the principal includes the service. "Everybody", as in SNS's default policy, includes AWS's services in the account."""
    if not isinstance(principal, Mapping):
        return bool(principal == "*")
    return "*" in listed(principal.get("AWS", [])) or service in listed(principal.get("Service", []))
