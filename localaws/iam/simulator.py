"""Asks an IAM simulator (`@cloud-copilot/iam-simulate`, offline) what policies allow: one Node process for all questions."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("simulator.mjs")
LIBRARY = SCRIPT.parents[2] / "node_modules" / "@cloud-copilot" / "iam-simulate"
LIMIT_S = 120

Policies = Mapping[str, Mapping[str, Any]]
"""The policies of a role: document by name."""


class NotInstalled(RuntimeError):
    """Node or the simulator is not installed; `make setup` installs both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as IAM sees it."""

    principal: str
    """ARN of the role, or the name of a service."""
    action: str
    resource: str
    context: Mapping[str, str | list[str]] = field(default_factory=dict)
    """Values that IAM fills in for this action and resource, and no others: the simulator reports keys that IAM never fills in."""
    resource_policy: Mapping[str, Any] | None = None
    """Policy of the resource itself, where it matters: of a KMS key, of a topic, a role's trust."""
    session_policy: Mapping[str, Any] | None = None
    """The session's own policy, which has to allow the request as well; None where it has none."""

    @property
    def identity(self) -> str:
        """Returns the same text for equal questions."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The simulator's answer to a request."""

    allowed: bool
    ignored: tuple[str, ...]
    """Keys of the context that IAM never fills in for this action and resource."""
    error: str
    """Why there is no answer: the action or resource type does not exist, or IAM would reject a policy."""
    by: tuple[tuple[str, int], ...]
    """(policy, index of the statement) of every statement that allows the request."""


def simulate(policies: Mapping[str, Policies], requests: Sequence[Request]) -> list[Answer]:
    """Returns answers in the order of the requests; `policies` are keyed by the principal's ARN. Raises NotInstalled."""
    document = {"policies": policies, "requests": [asdict(request) for request in requests]}
    return [
        Answer(
            allowed=one["allowed"],
            ignored=tuple(one["ignored"]),
            error=one["error"],
            by=tuple((policy, index) for policy, index in one["by"]),
        )
        for one in _node(document)["answers"]
    ]


def condition_keys(questions: Iterable[tuple[str, str]]) -> list[frozenset[str]]:
    """Returns the keys, in lower case, that IAM may fill in for each (action, resource). `aws:requesttag/${tagkey}` stands for any."""
    document = {"keys": [{"action": action, "resource": resource} for action, resource in questions]}
    return [frozenset(one) for one in _node(document)["keys"]]


def _node(document: Mapping[str, Any]) -> dict[str, Any]:
    node = shutil.which("node")
    if node is None or not LIBRARY.exists():
        raise NotInstalled("the IAM simulator is not installed: run `make setup`")
    done = subprocess.run(
        [node, str(SCRIPT)], input=json.dumps(document), capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    if done.returncode:
        raise RuntimeError(f"the IAM simulator failed: {done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
