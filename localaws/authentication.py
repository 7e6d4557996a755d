"""Refuses requests that nobody of the account signed, in each service's own words, before anything else looks at them.

Clocks are not compared: a request in headers is valid at any time, where AWS takes it for a quarter of an hour.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from typing import NamedTuple

from localaws.moto_keys import Secret
from localaws.recorder import Answer, Call, Environ
from localaws.refusing import refused
from localaws.signatures import Signature, has_expired, has_its_body, is_by

SIGNED_FALSE = (
    "The request signature we calculated does not match the signature you provided. Check your key and signing method."
)
INVALID_TOKEN = "The security token included in the request is invalid."
EC2_WORDS = "AWS was not able to validate the provided access credentials"


class Words(NamedTuple):
    """An error of one protocol."""

    code: str
    message: str
    status: int


UNKNOWN = {
    "s3": Words("InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.", 403),
    "ec2": Words("AuthFailure", EC2_WORDS, 401),
    "query": Words("InvalidClientTokenId", INVALID_TOKEN, 403),
    "rest-json": Words("UnrecognizedClientException", INVALID_TOKEN, 403),
    "": Words("UnrecognizedClientException", INVALID_TOKEN, 400),
}
"""By protocol, what whoever signs with keys hears that the account does not know; the last is that of all others. The same below."""
WRONG_TOKEN = {**UNKNOWN, "s3": Words("InvalidToken", "The provided token is malformed or otherwise invalid.", 400)}
WRONG_SIGNATURE = {
    "s3": Words("SignatureDoesNotMatch", SIGNED_FALSE, 403),
    "ec2": Words("AuthFailure", EC2_WORDS, 401),
    "query": Words("SignatureDoesNotMatch", SIGNED_FALSE, 403),
    "rest-json": Words("InvalidSignatureException", SIGNED_FALSE, 403),
    "": Words("InvalidSignatureException", SIGNED_FALSE, 400),
}
EXPIRED = {"": Words("AccessDenied", "Request has expired", 403)}
WRONG_BODY = {
    **WRONG_SIGNATURE,
    "s3": Words(
        "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.", 400
    ),
}
UNSIGNED = {
    "s3": Words("AccessDenied", "Access Denied", 403),
    "": Words("MissingAuthenticationToken", "Request is missing Authentication Token", 403),
}
Table = dict[str, Words]


class Authentication:
    """Asks of each request who signed it. Safe to use from any thread."""

    def __init__(self, secret_of: Callable[[str], Secret | None], *, now: Callable[[], float] = time.time) -> None:
        """`secret_of` returns what belongs to an access key; None where the account has no such key."""
        self._secret_of, self._now = secret_of, now

    def __call__(self, signature: Signature | None, environ: Environ) -> Answer | None:
        """Returns the refusal; None for a request that somebody of the account signed. Reads no body for whoever has no key."""
        table = self._judge(signature, environ)
        if table is None:
            return None
        call = _describe(signature, environ)
        words = table.get(call.protocol) or table[""]
        return refused(call, *words) or Answer(words.status, b"", error=words.code)

    def _judge(self, signature: Signature | None, environ: Environ) -> Table | None:
        if signature is None:
            return UNSIGNED
        secret = self._secret_of(signature.access_key)
        if secret is None:
            return UNKNOWN
        if not is_by(environ, signature, secret.value):
            return WRONG_SIGNATURE
        if not hmac.compare_digest(signature.token, secret.token):
            return WRONG_TOKEN
        if has_expired(signature, self._now()):
            return EXPIRED
        return None if has_its_body(environ) else WRONG_BODY


def _describe(signature: Signature | None, environ: Environ) -> Call:
    """As much of a call as its refusal needs: the protocol, as its headers tell it, and whether its answer may have a body."""
    service = signature.service if signature else ""
    action = "Head" if environ["REQUEST_METHOD"] == "HEAD" else ""
    return Call(at=0.0, role="", service=service, region="", action=action, protocol=_protocol(service, environ))


def _protocol(service: str, environ: Environ) -> str:
    if service in ("s3", ""):
        return "s3"
    if "HTTP_X_AMZ_TARGET" in environ:
        return "json"
    if "HTTP_SMITHY_PROTOCOL" in environ:
        return "cbor"
    is_form = environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded")
    if is_form or "Action=" in environ.get("QUERY_STRING", ""):
        return "ec2" if service == "ec2" else "query"
    return "rest-json"
