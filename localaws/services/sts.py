"""Sessions of roles that a role of the account begins, with a tag and a policy of their own; moto knows neither.

A session's keys, tags, policy and end are known to the recorder, so that every later call of the session is judged by them, and refused
once its keys have expired.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from moto.core.exceptions import ServiceException
from moto.iam.models import iam_backends
from moto.sts.responses import TokenResponse

from localaws.iam.parameters import numbered
from localaws.model import listed
from localaws.recorder import Answer, Call, Environ, Session
from localaws.refusing import refused

if TYPE_CHECKING:
    from localaws.server import LocalAws

LONGEST_CHAINED_S, SHORTEST_S = 3600, 900
"""Seconds of a session that another session begins, at most, and of any session, at least."""
MOST_POLICY, MOST_NAME = 2048, 64
NAME = re.compile(r"[\w+=,.@-]{2,64}")
AWAY, SHORT = "session-service-away", "keys-short"
"""Faults: STS answers no session, and sessions end earlier than asked."""
HANGS_S = 30.0
"""Longer than any caller waits for an answer."""
EXPIRED = {
    "s3": ("ExpiredToken", "The provided token has expired.", 400),
    "ec2": ("RequestExpired", "Request has expired.", 400),
    "query": ("ExpiredToken", "The security token included in the request is expired", 403),
    "rest-json": ("ExpiredTokenException", "The security token included in the request is expired", 403),
}
"""What a caller with expired keys hears, by protocol; JSON services answer as below."""


def install(aws: LocalAws) -> None:
    def assume_role(original: Any, call: TokenResponse) -> Any:
        begun_by = aws.recorder.caller(call.get_access_key())
        role = call._get_param("RoleArn")
        if begun_by is None or not _exists(role):  # a person, or the CDK's own roles
            return original(call)
        tags = {one["Key"]: one["Value"] for one in call._get_param("Tags", []) or []}
        _check(call, role, begun_by, tags)
        answer = original(call)
        keys = answer.result["Credentials"]
        if fault := aws.conditions.fault(SHORT, tags):
            lasts_s = fault.seconds("seconds") / aws.conditions.speed
            keys.expiration = datetime.fromtimestamp(time.time() + lasts_s, tz=timezone.utc).replace(tzinfo=None)
        session = Session(
            role=role,
            throttled=True,
            name=call._get_param("RoleSessionName"),
            tags=tags,
            policy=call._get_param("Policy") or "",
            until=keys.expiration.replace(tzinfo=timezone.utc).timestamp(),
        )
        aws.recorder.know(keys.access_key_id, session)
        return answer

    aws.wrap(TokenResponse, "assume_role", assume_role)
    aws.recorder.gatekeepers.append(expired)
    aws.recorder.interceptors.append(lambda call, _: _away(aws, call))


def expired(call: Call, environ: Environ) -> Answer | None:  # noqa: ARG001
    """What a call answers whose keys have expired; None for keys that are valid."""
    if call.at < call.by.until:
        return None
    usual = ("ExpiredTokenException", "The security token included in the request is expired", 400)
    return refused(call, *EXPIRED.get(call.protocol, usual))


def _away(aws: LocalAws, call: Call) -> Answer | None:
    """The error of a service that is away; where it hangs, after its callers have given up."""
    fault = aws.conditions.now_under(AWAY) if call.name == "sts:AssumeRole" else None
    keys, values = (numbered(call, "Tags.member.", end) for end in (".Key", ".Value"))
    if fault is None or not keys or not fault.meets(dict(zip(keys, values, strict=True))):
        return None
    if fault.text("how") == "hangs":
        aws.stopping.wait(HANGS_S)
    return refused(call, "ServiceUnavailable", "Service is unable to handle request.", 503)


def _check(call: TokenResponse, role: str, begun_by: str, tags: Mapping[str, str]) -> None:
    duration, name = call._get_int_param("DurationSeconds", 3600), call._get_param("RoleSessionName")
    if duration > LONGEST_CHAINED_S:
        raise _refused(
            "ValidationError",
            "The requested DurationSeconds exceeds the 1 hour session limit",
        )
    if duration < SHORTEST_S or not NAME.fullmatch(name):
        raise _refused("ValidationError", f"DurationSeconds {duration} or RoleSessionName {name} does not fit")
    if len(call._get_param("Policy") or "") > MOST_POLICY:
        raise _refused("ValidationError", f"policy: Member must have length less than or equal to {MOST_POLICY}")
    trust = _trust(role)
    wanted = ["sts:AssumeRole", *(["sts:TagSession"] if tags else [])]
    if not all(any(_lets(one, begun_by, action, tags) for one in trust) for action in wanted):
        raise _refused(
            "AccessDenied", f"User: {begun_by} is not authorized to perform: {wanted[-1]} on resource: {role}", 403
        )


def _lets(statement: Mapping[str, Any], begun_by: str, action: str, tags: Mapping[str, str]) -> bool:
    """Whether the statement of a trust policy names the role that asks, and the tag that it has to give."""
    if begun_by not in listed(statement["Principal"].get("AWS", [])) or action not in listed(statement["Action"]):
        return False
    needed = statement.get("Condition", {}).get("StringLike", {})
    return all(tags.get(key.partition("/")[2]) for key in needed if key.startswith("aws:RequestTag/"))


def _trust(role: str) -> list[Mapping[str, Any]]:
    document = _found(role).assume_role_policy_document
    read: Mapping[str, Any] = json.loads(document) if isinstance(document, str) else document
    return list(listed(read["Statement"]))


def _exists(role: str) -> bool:
    try:
        return _found(role) is not None and "/cdk-" not in role
    except Exception:
        return False


def _found(role: str) -> Any:
    return iam_backends[role.split(":")[4]]["aws"].get_role_by_arn(role)


def _refused(code: str, message: str, status: int = 400) -> ServiceException:
    refused = ServiceException(message)
    refused.code, refused.status = code, status
    return refused
