"""Judges recorded AWS calls by the policies of the calling role: derives what IAM would check, and asks whether it would allow it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from localaws.iam.account import Account
from localaws.iam.questions import requests
from localaws.iam.simulator import Answer, Policies, Request, simulate
from localaws.model import listed
from localaws.recorder import Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A question that a call raises for IAM, and the answer."""

    call: Call
    request: Request
    answer: Answer


@dataclass(frozen=True, order=True, slots=True)
class Granted:
    """One action on one resource pattern of one statement."""

    principal: str
    statement: str
    action: str
    resource: str


def judge(calls: Iterable[Call], policies: Mapping[str, Policies], account: Account) -> list[Verdict]:
    """Returns one verdict for each different question."""
    asked = {request.identity: (call, request) for call in calls for request in requests(call, account)}
    answers = simulate(policies, [request for _, request in asked.values()])
    return [
        Verdict(call=call, request=request, answer=answer)
        for (call, request), answer in zip(asked.values(), answers, strict=True)
    ]


def granted(policies: Mapping[str, Policies]) -> set[Granted]:
    """Returns everything that policies allow, piece by piece."""
    return {
        Granted(principal, name(statement), action, resource)
        for principal, of_role in policies.items()
        for document in of_role.values()
        for statement in document["Statement"]
        for action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
    }


def needed(verdicts: Iterable[Verdict], policies: Mapping[str, Policies]) -> set[Granted]:
    """Returns the parts of `granted` that let a call through."""
    found = set()
    for verdict in verdicts:
        request = verdict.request
        for policy, index in verdict.answer.by:
            statement = policies[request.principal][policy]["Statement"][index]
            found |= {
                Granted(request.principal, name(statement), request.action, resource)
                for resource in listed(statement["Resource"])
                if fnmatchcase(request.resource, _filled(resource, request))
            }
    return found


def _filled(resource: str, request: Request) -> str:
    """The resource with the request's own values in the place of policy variables."""
    return re.sub(r"\$\{([^}]+)\}", lambda variable: str(request.context.get(variable[1], variable[0])), resource)


def name(statement: Mapping[str, Any]) -> str:
    """Returns a statement's own name; the statements that the CDK writes have none."""
    return str(statement.get("Sid") or f"({', '.join(listed(statement['Action']))})")
