"""Denies what IAM would deny: the calls of nodes, which run other people's code, are judged before they take effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from localaws.iam.account import Account
from localaws.iam.questions import Untaught, requests
from localaws.iam.simulator import LiveSimulator, Policies, Request
from localaws.refusing import refused

if TYPE_CHECKING:
    from localaws.recorder import Answer, Call, Environ
    from localaws.server import LocalAws

FREE = ("sts:GetCallerIdentity",)
"""Calls that need no right."""
CODES = {"s3": "AccessDenied", "query": "AccessDenied", "ec2": "UnauthorizedOperation"}
"""What each protocol calls a denial; the others say AccessDeniedException."""
MANY = 20_000
"""Answers that are remembered."""


class Guard:
    """An interceptor of the recorder. `policies` gives those of a role by its ARN, or None for a role that is not guarded: the
    same object for as long as they are the same; `exists` says whether a bucket has a key."""

    def __init__(
        self, account: Account, policies: Callable[[str], Policies | None], exists: Callable[[str, str], bool]
    ) -> None:
        self._account, self._policies, self._exists = account, policies, exists
        self._simulator = LiveSimulator()
        self._known: dict[tuple[str, int], tuple[Policies, bool]] = {}
        """Answers by the question and the policies' identity. What is kept of the policies keeps others from having the same one."""
        self.denied: list[Call] = []
        """Calls that were denied, in order."""

    def install(self, aws: LocalAws) -> None:
        aws.recorder.interceptors.insert(0, self)  # ahead of the services that answer calls themselves
        aws.at_stop(self._simulator.close)

    def __call__(self, call: Call, environ: Environ) -> Answer | None:  # noqa: ARG002
        policies = self._policies(call.role)
        if policies is None or call.name in FREE:
            return None
        reads = call.name in ("s3:GetObject", "s3:HeadObject")
        if reads and not self._exists(call.parameters["Bucket"], call.parameters.get("Key", "")):
            call = replace(call, status=404)  # for which IAM is asked one thing more
        try:
            asked = requests(call, self._account)
        except (Untaught, ClientError):  # what it names may not be there
            asked = [Request(principal=call.role, action=call.name, resource="*")]
        why = next((one for one in asked if not self._allows(one, policies)), None)
        if why is None:
            return None
        self.denied.append(call)
        code = CODES.get(call.protocol, "AccessDeniedException")
        message = f"User: {call.role} is not authorized to perform: {why.action} on resource: {why.resource}"
        return refused(call, code, message, 400 if call.protocol == "json" else 403)

    def _allows(self, request: Request, policies: Policies) -> bool:
        question = request.identity, id(policies)
        if question not in self._known:
            if len(self._known) >= MANY:
                self._known.clear()
            (answer,) = self._simulator.ask({request.principal: policies}, [request])
            self._known[question] = policies, answer.allowed and not answer.error
        return self._known[question][1]
