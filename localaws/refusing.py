"""Writes the error that an interceptor answers, as the protocol of the caller wants it."""

from __future__ import annotations

import json
from html import escape

from localaws.recorder import Answer, Call

XML = {
    "ec2": "<Response><Errors><Error>{}</Error></Errors><RequestID>rehearsal</RequestID></Response>",
    "s3": "<Error>{}</Error>",
    "query": "<ErrorResponse><Error><Type>Sender</Type>{}</Error><RequestId>rehearsal</RequestId></ErrorResponse>",
}


def refused(call: Call, code: str, message: str, status: int) -> Answer | None:
    """Returns the answer; None for a protocol that moto does not serve."""
    if shape := XML.get(call.protocol):
        body = shape.format(f"<Code>{code}</Code><Message>{escape(message)}</Message>")
        return Answer(status, body.encode(), error=code)
    if call.protocol in ("json", "rest-json"):
        headers = {"Content-Type": "application/x-amz-json-1.1", "x-amzn-ErrorType": code}
        return Answer(status, json.dumps({"__type": code, "message": message}).encode(), headers, code)
    return None
