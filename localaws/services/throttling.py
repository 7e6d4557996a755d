"""Throttling: refuses a share of the calls of functions and nodes before they take effect, in the service's own words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from localaws.recorder import Answer

if TYPE_CHECKING:
    from localaws.recorder import Call, Environ
    from localaws.server import LocalAws

LARGE = 64 * 1024
"""S3 puts of more bytes are data: repeating them would show nothing and take long."""


def install(aws: LocalAws) -> None:
    """Installs throttling. The deploying person, and AWS itself on behalf of a role, are never throttled."""

    def intercept(call: Call, environ: Environ) -> Answer | None:  # noqa: ARG001
        if not call.throttled or call.size > LARGE or aws.chance.random() >= aws.conditions.throttled:
            return None
        return refusal(call)

    aws.recorder.interceptors.append(intercept)


def refusal(call: Call) -> Answer | None:
    """Returns the throttling answer in the caller's protocol; None for a protocol that moto does not serve."""
    if call.protocol == "ec2":
        code = "RequestLimitExceeded"
        body = (
            f"<Response><Errors><Error><Code>{code}</Code><Message>Request limit exceeded.</Message></Error></Errors>"
        )
        return Answer(503, f"{body}<RequestID>rehearsal</RequestID></Response>".encode(), error=code)
    if call.protocol == "s3":
        body = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
        return Answer(503, body.encode(), error="SlowDown")
    if call.protocol == "query":
        body = (
            "<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error>"
        )
        return Answer(400, f"{body}<RequestId>rehearsal</RequestId></ErrorResponse>".encode(), error="Throttling")
    if call.protocol in ("json", "rest-json"):
        code = "TooManyRequestsException" if call.service == "lambda" else "ThrottlingException"
        headers = {"Content-Type": "application/x-amz-json-1.1", "x-amzn-ErrorType": code}
        status = 400 if call.protocol == "json" else 429
        return Answer(status, json.dumps({"__type": code, "message": "Rate exceeded"}).encode(), headers, code)
    return None
