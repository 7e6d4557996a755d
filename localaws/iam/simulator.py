"""Asks an IAM simulator (`@cloud-copilot/iam-simulate`, offline) what policies allow: one Node process for all questions."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
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
        return json.dumps(_fields(self), sort_keys=True, default=dict)


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
    return _answers(_node(_questions(policies, requests)))


class LiveSimulator:
    """A Node process that answers questions for as long as it lives. Safe to use from any thread. Raises NotInstalled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, policies: Mapping[str, Policies], requests: Sequence[Request]) -> list[Answer]:
        """As `simulate`."""
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps(_questions(policies, requests)) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the IAM simulator has ended")
        return _answers(json.loads(line))

    def close(self) -> None:
        with self._lock:
            self._process.kill()
            self._process.wait()


def _questions(policies: Mapping[str, Policies], requests: Sequence[Request]) -> dict[str, Any]:
    return {"policies": policies, "requests": [_fields(request) for request in requests]}


def _fields(request: Request) -> dict[str, Any]:
    """As `asdict`, which copies every policy: most of the time that it took to judge all calls of a rehearsal."""
    return {one.name: getattr(request, one.name) for one in fields(request)}


def _answers(document: Mapping[str, Any]) -> list[Answer]:
    return [
        Answer(
            allowed=one["allowed"],
            ignored=tuple(one["ignored"]),
            error=one["error"],
            by=tuple((policy, index) for policy, index in one["by"]),
        )
        for one in document["answers"]
    ]


def condition_keys(questions: Iterable[tuple[str, str]]) -> list[frozenset[str]]:
    """Returns the keys, in lower case, that IAM may fill in for each (action, resource). `aws:requesttag/${tagkey}` stands for any."""
    document = {"keys": [{"action": action, "resource": resource} for action, resource in questions]}
    return [frozenset(one) for one in _node(document)["keys"]]


def _command() -> list[str]:
    node = shutil.which("node")
    if node is None or not LIBRARY.exists():
        raise NotInstalled("the IAM simulator is not installed: run `make setup`")
    return [node, str(SCRIPT)]


def _node(document: Mapping[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        _command(), input=json.dumps(document), capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    if done.returncode:
        raise RuntimeError(f"the IAM simulator failed: {done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
