"""Reads how a request was signed (Signature Version 4, in headers or in a presigned address), and computes what its signature has to be.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import calendar
import hashlib
import hmac
import io
import re
import time
from collections.abc import MutableMapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote, unquote_plus

Environ = MutableMapping[str, Any]
ALGORITHM = "AWS4-HMAC-SHA256"
HEADER = re.compile(
    rf"{ALGORITHM} Credential=(?P<credential>[^,\s]+)(?:,\s*SignedHeaders=(?P<headers>[^,\s]+))?,\s*Signature=(?P<signature>\w+)"
)
DATE = re.compile(r"\d{8}")
STAMP = "%Y%m%dT%H%M%SZ"
DIGEST = re.compile("[0-9a-f]{64}")
UNSIGNED_PAYLOAD = "UNSIGNED-PAYLOAD"
OF_SERVER = {"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH"}
"""Headers that WSGI names otherwise than all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What a request says of its signature."""

    access_key: str
    date: str
    region: str
    service: str
    headers: tuple[str, ...]
    """Names of the headers that were signed."""
    signed_at: str
    value: str
    token: str
    """Of a session; empty without one."""
    lasts_s: int | None = None
    """How long a presigned address is valid; None for a request that is signed in its headers."""

    @property
    def scope(self) -> str:
        return f"{self.date}/{self.region}/{self.service}/aws4_request"


def read_signature(environ: Environ) -> Signature | None:
    """Returns how the request was signed; None where it is not, or in another way. What its headers say counts, where they say anything:
    whose call it is and who signed it must be one answer."""
    if (said := environ.get("HTTP_AUTHORIZATION")) is not None:
        found = HEADER.fullmatch(said.strip())
        return found and _signature(
            found["credential"], found["headers"] or "", environ.get("HTTP_X_AMZ_DATE", ""), found["signature"],
            environ.get("HTTP_X_AMZ_SECURITY_TOKEN", ""),
        )  # fmt: skip
    query = {name: unquote(value) for name, value in _pairs(environ)}
    if query.get("X-Amz-Algorithm") != ALGORITHM:
        return None
    lasts = query.get("X-Amz-Expires", "")
    return _signature(
        query.get("X-Amz-Credential", ""), query.get("X-Amz-SignedHeaders", ""), query.get("X-Amz-Date", ""),
        query.get("X-Amz-Signature", ""), query.get("X-Amz-Security-Token", ""), int(lasts) if lasts.isdecimal() else 0,
    )  # fmt: skip


def _signature(
    credential: str, headers: str, signed_at: str, value: str, token: str, lasts_s: int | None = None
) -> Signature | None:
    parts = credential.split("/")
    if len(parts) != 5 or parts[4] != "aws4_request" or not DATE.fullmatch(parts[1]):
        return None
    key, date, region, service, _ = parts
    return Signature(
        access_key=key, date=date, region=region, service=service, headers=tuple(headers.lower().split(";")),
        signed_at=signed_at, value=value, token=token, lasts_s=lasts_s,
    )  # fmt: skip


def has_expired(signature: Signature, now: float) -> bool:
    """Whether a presigned address is no longer valid, or says no time; `now` is UTC epoch seconds."""
    if signature.lasts_s is None:
        return False
    try:
        signed_at = calendar.timegm(time.strptime(signature.signed_at, STAMP))
    except ValueError:
        return True
    return now >= signed_at + signature.lasts_s


def is_by(environ: Environ, signature: Signature, secret: str) -> bool:
    """Whether the request was signed with this secret. Reads the body, which stays there to be read."""
    # S3 signs the path as it is sent, all others encode it a second time. Clients differ in how they spell a query.
    target, service = _target(environ), signature.service
    path = target.partition("?")[0] or "/"
    path = path if service == "s3" else quote(path, safe="/~")
    payload = _payload(environ, signature)
    key = _signing_key(secret, signature.date, signature.region, service)
    for query in _spellings(environ):
        request = "\n".join(
            (
                environ["REQUEST_METHOD"],
                path,
                query,
                *_headers(environ, signature),
                "",
                ";".join(signature.headers),
                payload,
            )
        )
        digest = hashlib.sha256(request.encode("latin-1", "replace")).hexdigest()
        text = f"{ALGORITHM}\n{signature.signed_at}\n{signature.scope}\n{digest}"
        if hmac.compare_digest(hmac.new(key, text.encode(), "sha256").hexdigest(), signature.value):
            return True
    return False


def has_its_body(environ: Environ) -> bool:
    """Whether the body has the digest that the signed headers name, where they name one."""
    told = environ.get("HTTP_X_AMZ_CONTENT_SHA256", "")
    return not DIGEST.fullmatch(told) or hmac.compare_digest(told, hashlib.sha256(read_body(environ)).hexdigest())


def read_body(environ: Environ) -> bytes:
    """Returns the request's body, which stays there to be read."""
    body: bytes = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    return body


def _payload(environ: Environ, signature: Signature) -> str:
    if told := environ.get("HTTP_X_AMZ_CONTENT_SHA256", ""):
        return str(told)
    if signature.lasts_s is not None and signature.service == "s3":
        return UNSIGNED_PAYLOAD
    return hashlib.sha256(read_body(environ)).hexdigest()


def _headers(environ: Environ, signature: Signature) -> list[str]:
    found = list[str]()
    for name in signature.headers:
        value = environ.get(OF_SERVER.get(name) or f"HTTP_{name.upper().replace('-', '_')}", "")
        found.append(f"{name}:{' '.join(str(value).split())}")
    return found


def _spellings(environ: Environ) -> list[str]:
    """The query in canonical form: as it was sent, and as the specification spells what it says."""
    pairs = [(name, value) for name, value in _pairs(environ) if name != "X-Amz-Signature"]
    sent = "&".join(f"{name}={value}" for name, value in sorted(pairs))
    spelt = sorted((_encode(unquote_plus(name)), _encode(unquote_plus(value))) for name, value in pairs)
    return list(dict.fromkeys((sent, "&".join(f"{name}={value}" for name, value in spelt))))


def _encode(text: str) -> str:
    return quote(text, safe="-_.~")


def _pairs(environ: Environ) -> list[tuple[str, str]]:
    query = _target(environ).partition("?")[2]
    split = (one.partition("=") for one in query.split("&") if one)
    return [(name, value) for name, _, value in split]


def _target(environ: Environ) -> str:
    """The request's target, as it was sent."""
    return str(environ.get("RAW_URI") or f"{environ.get('PATH_INFO', '')}?{environ.get('QUERY_STRING', '')}")


@lru_cache(maxsize=1024)
def _signing_key(secret: str, date: str, region: str, service: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    return key
