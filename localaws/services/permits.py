"""Resource policies as far as services ask them: whether a queue, a topic or a key lets a service of AWS in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any


def lets(policy: str | Mapping[str, Any] | None, service: str, *actions: str) -> bool:
    """Whether statements of the policy allow the service (`events.amazonaws.com`) every one of the actions.

    Conditions are taken as met, and denials as not meant: those of ours refuse requests without TLS.
    """
    document = json.loads(policy) if isinstance(policy, str) else policy or {}
    allowing = [one for one in _listed(document.get("Statement", [])) if one["Effect"] == "Allow"]
    patterns = [
        pattern.lower()
        for one in allowing
        if _meets(one.get("Principal"), service)
        for pattern in _listed(one["Action"])
    ]
    return all(any(fnmatchcase(action.lower(), pattern) for pattern in patterns) for action in actions)


def _meets(principal: Any, service: str) -> bool:
    """Everybody, as in the policy that SNS itself gives a topic, is meant to include AWS's services in the account."""
    if not isinstance(principal, Mapping):
        return bool(principal == "*")
    return "*" in _listed(principal.get("AWS", [])) or service in _listed(principal.get("Service", []))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
