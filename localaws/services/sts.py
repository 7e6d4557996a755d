"""Sessions of roles that a role of the account begins, with a tag and a policy of their own; moto knows neither.

A session's keys, tags, policy and end are known to the recorder, so that every later call of the session is judged by them, and refused
once its keys have expired.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from moto.iam.models import iam_backends
from moto.sts.exceptions import STSClientError
from moto.sts.responses import TokenResponse

from localaws.iam.parameters import numbered
from localaws.model import listed
from localaws.moto_keys import Secret
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
        if begun_by is None or "/cdk-" in role:  # a person, or the CDK's own roles
            return original(call)
        if not _exists(role):
            raise _denied(begun_by, "sts:AssumeRole", role)
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
        aws.recorder.know(keys.access_key_id, session, Secret(keys.secret_access_key, keys.session_token))
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
    given: dict[str, list[str]] = {f"aws:RequestTag/{key}": [value] for key, value in tags.items()}
    given |= {"aws:TagKeys": sorted(tags)} if tags else {}
    given |= {"sts:RoleSessionName": [name]}
    for wanted in ["sts:AssumeRole", *(["sts:TagSession"] if tags else [])]:
        if not trusts(_trust(role), begun_by, wanted, given):
            raise _denied(begun_by, wanted, role)


def trusts(trust: Sequence[Mapping[str, Any]], begun_by: str, action: str, given: Mapping[str, Sequence[str]]) -> bool:
    """Whether the statements of a trust policy allow the role that asks to do this, with these values by condition key."""
    apply = [one["Effect"] for one in trust if _applies(one, begun_by, action, given)]
    return "Deny" not in apply and "Allow" in apply


def _applies(statement: Mapping[str, Any], begun_by: str, action: str, given: Mapping[str, Sequence[str]]) -> bool:
    principal = statement["Principal"]
    named = ["*"] if principal == "*" else listed(principal.get("AWS", []))
    account = begun_by.split(":")[4]
    if not {begun_by, "*", account, f"arn:aws:iam::{account}:root"} & set(named):
        return False
    if not any(fnmatchcase(action.lower(), one.lower()) for one in listed(statement["Action"])):
        return False
    return all(
        _holds(operator, given.get(key, ()), listed(wanted))
        for operator, of_operator in statement.get("Condition", {}).items()
        for key, wanted in of_operator.items()
    )


def _holds(operator: str, values: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether a condition holds; one about a key that the request lacks does not, unless it is about every value."""
    every, _, plain = operator.rpartition(":")
    if plain == "Null" and not every:
        return (not values) == (str(wanted[0]).lower() == "true")
    match = {"StringEquals": str.__eq__, "StringLike": fnmatchcase}.get(plain)
    if match is None or every not in ("", "ForAllValues", "ForAnyValue"):
        raise NotImplementedError(f"the local STS does not know the condition {operator}")
    fits = [any(match(value, one) for one in wanted) for value in values]
    return all(fits) if every == "ForAllValues" else any(fits)


def _trust(role: str) -> list[Mapping[str, Any]]:
    document = _found(role).assume_role_policy_document
    read: Mapping[str, Any] = json.loads(document) if isinstance(document, str) else document
    return list(listed(read["Statement"]))


def _exists(role: str) -> bool:
    try:
        return _found(role) is not None
    except Exception:
        return False


def _found(role: str) -> Any:
    return iam_backends[role.split(":")[4]]["aws"].get_role_by_arn(role)


def _denied(begun_by: str, action: str, role: str) -> STSClientError:
    return _refused("AccessDenied", f"User: {begun_by} is not authorized to perform: {action} on resource: {role}")


def _refused(code: str, message: str) -> STSClientError:
    """Of moto's own class, because moto finds by the module of the class how to answer; another one becomes a 500."""
    return STSClientError(code, message)
