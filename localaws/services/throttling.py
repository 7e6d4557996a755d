"""Throttling: refuses a share of the calls of functions and nodes before they take effect, in the service's own words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localaws.refusing import refused

if TYPE_CHECKING:
    from localaws.recorder import Answer, Call, Environ
    from localaws.server import LocalAws

LARGE = 64 * 1024
"""S3 puts of more bytes are data: repeating them would show nothing and take long."""


CODES = {
    "ec2": ("RequestLimitExceeded", "Request limit exceeded.", 503),
    "s3": ("SlowDown", "Please reduce your request rate.", 503),
    "query": ("Throttling", "Rate exceeded", 400),
    "rest-json": ("ThrottlingException", "Rate exceeded", 429),
}


def install(aws: LocalAws) -> None:
    """Installs throttling. The deploying person, and AWS itself on behalf of a role, are never throttled."""

    def intercept(call: Call, environ: Environ) -> Answer | None:  # noqa: ARG001
        if not call.throttled or call.size > LARGE or aws.chance.random() >= aws.conditions.throttled:
            return None
        return refusal(call)

    aws.recorder.interceptors.append(intercept)


def refusal(call: Call) -> Answer | None:
    """Returns the throttling answer in the caller's protocol; None for a protocol that moto does not serve."""
    code, message, status = CODES.get(call.protocol, ("ThrottlingException", "Rate exceeded", 400))
    if call.service == "lambda":
        code = "TooManyRequestsException"
    return refused(call, code, message, status)
