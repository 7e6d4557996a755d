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
    """Returns the answer; None for a protocol that is not known. S3's answer to HEAD has no body, and so no code for the caller."""
    if call.protocol == "s3" and call.action.startswith("Head"):
        return Answer(status, b"", error=code)
    if shape := XML.get(call.protocol):
        body = shape.format(f"<Code>{code}</Code><Message>{escape(message)}</Message>")
        return Answer(status, body.encode(), error=code)
    if call.protocol == "cbor":
        headers = {"Content-Type": "application/cbor", "smithy-protocol": "rpc-v2-cbor"}
        return Answer(status, b"\xa2" + b"".join(map(_cbor, ("__type", code, "message", message))), headers, code)
    if call.protocol in ("json", "rest-json"):
        headers = {"Content-Type": "application/x-amz-json-1.1", "x-amzn-ErrorType": code}
        return Answer(status, json.dumps({"__type": code, "message": message}).encode(), headers, code)
    return None


def _cbor(text: str) -> bytes:
    """A text in CBOR, which a map (0xa2: of two pairs) is made of."""
    content = text.encode()
    return b"\x79" + len(content).to_bytes(2, "big") + content
