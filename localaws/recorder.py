"""WSGI middleware that names every AWS call, lets gaps answer or change it first, and records how it ended."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import unescape

import botocore.loaders

from localaws.moto_keys import Secret, find_role, find_secret
from localaws.signatures import Environ, Signature, read_body, read_signature

_MODELS = {
    "states": "stepfunctions",
    "monitoring": "cloudwatch",
    "email": "ses",
    "elasticfilesystem": "efs",
    "elasticloadbalancing": "elbv2",
    "tagging": "resourcegroupstaggingapi",
}
"""Services whose name in a signature (and IAM prefix) differs from the name of botocore's model."""
MOST_UNREAD = 1024 * 1024
"""Bytes of a refused request's body that are read, so that its client hears the refusal; a longer one may find its connection closed."""
_PARAMETER_LENGTH = 200
_KEY_LENGTH = 2048
"""Most bytes of a partition key in DynamoDB."""
_WHOLE = ("Tags", "tags", "Entries")
"""Parameters that are recorded completely, because rights depend on every part of them."""
_TELLING_BODIES = ("batch", "rds-data")
"""REST-JSON services whose rights depend on the body."""
_TELLING_HEADERS = {
    "HTTP_X_AMZ_COPY_SOURCE": "CopySource",
    "HTTP_X_AMZ_TAGGING": "Tagging",
    "HTTP_IF_MATCH": "If-Match",
}
"""Headers of S3 calls on which rights depend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Whose keys they are."""

    role: str
    """ARN of the role (or user)."""
    throttled: bool = False
    """Whether control planes throttle this caller."""
    name: str = ""
    """Name of the role's session: the instance or the function that has the keys; empty if it has none."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Tags of the session, which policies know as `aws:PrincipalTag`."""
    policy: str = ""
    """The session's own policy (JSON); what it does not allow the role's policies cannot allow either. Empty for none."""
    until: float = math.inf
    """When the keys expire, UTC epoch seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One AWS call."""

    at: float
    """UTC epoch seconds."""
    role: str
    """ARN of the role (or user) whose keys signed the call; the key itself if nobody handed it out."""
    service: str
    """Name of the service as in IAM actions: `ec2`, `states`, `s3`."""
    region: str
    action: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Only the top level, with long values cut; of calls to DynamoDB every level, because rights depend on the keys."""
    protocol: str = ""
    """Protocol, which decides how errors are written: `ec2`, `query`, `json`, `s3`, `rest-json`, `cbor`."""
    by: Session = Session(role="")
    """Whose keys signed the call."""
    size: int = 0
    """Bytes of the request's body."""
    answered: int = 0
    """Bytes of the answer's body, as its header says."""
    status: int = 0
    error: str = ""

    @property
    def session(self) -> str:
        return self.by.name

    @property
    def throttled(self) -> bool:
        return self.by.throttled

    @property
    def name(self) -> str:
        """`ec2:RunInstances`."""
        return f"{self.service}:{self.action}"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a gap in moto's place."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


Interceptor = Callable[[Call, Environ], Answer | None]
"""Sees a call before it takes effect; may change the environ, or answer, and then moto never sees the call."""
Watcher = Callable[[Call], None]
"""Sees a call after it ended."""


class Recorder:
    """Wraps an application. `calls` lists calls in the order in which they end."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._keys: dict[str, Session] = {}
        self._secrets: dict[str, Secret] = {}
        self._lock = threading.Lock()
        self.calls: list[Call] = []
        self.authentication: Callable[[Signature | None, Environ], Answer | None] | None = None
        """Refuses what nobody of the account signed, and what is not signed at all; such requests are no calls. None lets all pass."""
        self.gatekeepers: list[Interceptor] = []
        """Ask who calls, before any of the interceptors asks what: as AWS authenticates a request before it judges it."""
        self.interceptors: list[Interceptor] = []
        self.watchers: list[Watcher] = []

    def know(self, access_key: str, session: Session, secret: Secret | None = None) -> None:
        """Records that calls signed with this key are the session's. Without its secret nobody can sign with it."""
        self._keys[access_key] = session
        if secret is not None:
            self._secrets[access_key] = secret

    def secret_of(self, access_key: str) -> Secret | None:
        """Returns what belongs to a key; None for keys that nobody handed out."""
        return self._secrets.get(access_key) or find_secret(access_key)

    def caller(self, access_key: str) -> str | None:
        """Returns the ARN of the role whose session has this key; None for keys that nobody made known."""
        session = self._keys.get(access_key)
        return session.role if session and ":role/" in session.role else None

    def of(self, *, role: str | None = None, name: str | None = None) -> list[Call]:
        """Returns calls of a role (exact ARN) and of a name (`ec2:RunInstances`), where given."""
        with self._lock:
            return [call for call in self.calls if role in (None, call.role) and name in (None, call.name)]

    def counts(self) -> Counter[tuple[str, str]]:
        """Returns how often each (role, `service:action`) was called."""
        with self._lock:
            return Counter((call.role, call.name) for call in self.calls)

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        signature = read_signature(environ)
        if self.authentication is not None and (refusal := self.authentication(signature, environ)):
            # Whoever is refused makes nobody read much. What is left unread would be taken for the connection's next request.
            environ["wsgi.input"].read(min(_size(environ), MOST_UNREAD))
            return _answer(replace(refusal, headers={**refusal.headers, "Connection": "close"}), start_response)
        if signature is None:
            return self._application(environ, start_response)  # type: ignore[no-any-return]
        call = self._name(environ, signature)
        for interceptor in (*self.gatekeepers, *self.interceptors):
            if answer := interceptor(call, environ):
                self._remember(replace(call, status=answer.status, error=answer.error))
                # Otherwise the server would take an unread body for the connection's next request.
                environ["wsgi.input"].read(call.size)
                return _answer(answer, start_response)
        return self._pass_on(call, environ, start_response)

    def _pass_on(self, call: Call, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        seen: list[Any] = []

        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            seen[:] = [int(status.split()[0]), dict(headers)]
            return start_response(status, headers, *rest)

        body: Iterable[bytes] = self._application(environ, start)
        status, headers = seen
        error = ""
        if status >= 400:
            body = [b"".join(body)]
            error = error_code(body[0], headers)
        length = next((value for name, value in headers.items() if name.lower() == "content-length"), "")
        self._remember(replace(call, status=status, error=error, answered=int(length or 0)))
        return body

    def _remember(self, call: Call) -> None:
        with self._lock:
            self.calls.append(call)
        for watcher in self.watchers:
            watcher(call)

    def _name(self, environ: Environ, signature: Signature) -> Call:
        query = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
        key = signature.access_key
        by = self._keys.get(key) or Session(role=find_role(key) or key)
        action, parameters, protocol = _action(environ, signature.service, query)
        return Call(
            at=time.time(),
            role=by.role,
            by=by,
            service=signature.service,
            region=signature.region,
            action=action,
            parameters=parameters,
            protocol=protocol,
            size=_size(environ),
        )


def _size(environ: Environ) -> int:
    return int(environ.get("CONTENT_LENGTH") or 0)


def _answer(answer: Answer, start_response: Callable[..., Any]) -> Iterable[bytes]:
    headers = {"Content-Type": "application/xml", **answer.headers, "Content-Length": str(len(answer.body))}
    start_response(f"{answer.status} {answer.error or 'OK'}", list(headers.items()))
    return [answer.body]


def error_code(body: bytes, headers: Mapping[str, str]) -> str:
    """Returns the error's name, in any of AWS's protocols."""
    lower = {name.lower(): value for name, value in headers.items()}
    if named := lower.get("x-amzn-errortype"):
        return named.split(":")[0].split("#")[-1]
    if found := re.search(rb"<Code>([^<]+)</Code>", body):
        return found[1].decode()
    try:
        document = json.loads(body)
    except ValueError:
        return ""
    name = document.get("__type") or document.get("code") or document.get("Type") if isinstance(document, dict) else ""
    return str(name or "").split("#")[-1]


def _action(environ: Environ, service: str, query: dict[str, str]) -> tuple[str, dict[str, Any], str]:
    """Returns (action, parameters, protocol) of a request."""
    if target := environ.get("HTTP_X_AMZ_TARGET"):
        body = read_body(environ)
        document = json.loads(body) if body.startswith(b"{") else {}
        short = _short_within(document) if service == "dynamodb" else _short(document)
        return target.rsplit(".", 1)[-1], short, "json"
    if "HTTP_SMITHY_PROTOCOL" in environ:
        return environ["PATH_INFO"].rsplit("/", 1)[-1], {}, "cbor"
    if environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded") and service != "s3":
        query = query | dict(parse_qsl(read_body(environ).decode(), keep_blank_values=True))
    if "Action" in query:
        parameters = {name: value for name, value in query.items() if name not in ("Action", "Version")}
        return query["Action"], _short(parameters), "ec2" if service == "ec2" else "query"
    action, labels = _rest_action(environ, service, query)
    plain = {name: value for name, value in query.items() if not name.startswith("X-Amz-")}
    if service in _TELLING_BODIES and (body := read_body(environ)).startswith(b"{"):
        labels |= json.loads(body)
    if service != "s3":
        return action, _short({**labels, **plain}), "rest-json"
    headers = {name: unquote(environ[key]) for key, name in _TELLING_HEADERS.items() if key in environ}
    many = {DELETED: _deleted(read_body(environ))} if action == "DeleteObjects" else {}
    return action, _short({**labels, **plain, **headers}) | many, "s3"


def _deleted(document: bytes) -> list[list[str]]:
    """The keys that a call deletes, each with its version if it names one: rights depend on all of them."""
    found = re.findall(r"<Object>(.*?)</Object>", document.decode(), re.DOTALL)
    told = [(re.findall(r"<Key>(.*?)</Key>", one), re.findall(r"<VersionId>(.*?)</VersionId>", one)) for one in found]
    return [[unescape(key[0]), *version] for key, version in told if key]


DELETED = "Deleted"
"""The parameter that a DeleteObjects' keys are recorded under."""


def _short(parameters: Any) -> dict[str, Any]:
    if not isinstance(parameters, dict):
        return {}
    short = {}
    for name, value in parameters.items():
        text = value if isinstance(value, str) else json.dumps(value)
        short[name] = value if len(text) <= _PARAMETER_LENGTH or name in _WHOLE else text[:_PARAMETER_LENGTH] + "..."
    return short


def _short_within(value: Any) -> Any:
    """Cuts texts that are longer than any key."""
    if isinstance(value, dict):
        return {name: _short_within(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_short_within(one) for one in value]
    return value[:_KEY_LENGTH] + "..." if isinstance(value, str) and len(value) > _KEY_LENGTH else value


def _rest_action(environ: Environ, service: str, query: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Matches method, path, query and the one distinguishing header with the service's model; the most specific match wins."""
    path, method = environ.get("PATH_INFO", "/"), environ["REQUEST_METHOD"]
    if service == "s3":
        host = environ.get("HTTP_HOST", "").split(":")[0]
        if host.endswith((".localhost", ".amazonaws.com")):  # the host contains the bucket's name
            path = f"/{host.split('.')[0]}{path}"
    for operation in _operations(_MODELS.get(service, service)):
        if operation.method != method or not operation.needs <= query.keys():
            continue
        if any(query[name] != value for name, value in operation.fixed.items()):
            continue
        if operation.copies != ("HTTP_X_AMZ_COPY_SOURCE" in environ and method == "PUT" and service == "s3"):
            continue
        if match := operation.path.fullmatch(path):
            return operation.name, {name: unquote(value) for name, value in match.groupdict().items() if value}
    return f"{method} {path}", {}


@dataclass(frozen=True, slots=True)
class _Operation:
    name: str
    method: str
    path: re.Pattern[str]
    needs: frozenset[str]
    fixed: Mapping[str, str]
    copies: bool
    rank: tuple[int, int]


@cache
def _operations(model: str) -> tuple[_Operation, ...]:
    try:
        document = botocore.loaders.Loader().load_service_model(model, "service-2")
    except botocore.exceptions.UnknownServiceError:
        return ()
    operations = [_operation(name, entry, document) for name, entry in document["operations"].items()]
    return tuple(sorted(operations, key=lambda one: one.rank, reverse=True))


def _operation(name: str, entry: Mapping[str, Any], document: Mapping[str, Any]) -> _Operation:
    uri, _, query = entry["http"]["requestUri"].partition("?")
    labels = iter(range(100))

    def label(match: re.Match[str]) -> str:
        text = match[1]
        group = re.sub(r"\W", "_", text.rstrip("+")) if re.match(r"[A-Za-z]", text) else f"label{next(labels)}"
        # The server has decoded the path, so an ARN's slashes look like the path's own.
        return f"(?P<{group}>{'.+' if text.endswith(('+', 'Arn')) else '[^/]+'})"

    parts = re.split(r"(\{[^}]+\})", uri)
    pattern = "".join(
        re.sub(r"\{([^}]+)\}", label, part) if part.startswith("{") else re.escape(part) for part in parts
    )
    fixed = dict(parse_qsl(query, keep_blank_values=True))
    shape = document["shapes"][entry["input"]["shape"]] if "input" in entry else {}
    needed = {
        member["locationName"]
        for name, member in shape.get("members", {}).items()
        if member.get("location") == "querystring" and name in shape.get("required", [])
    }
    copies = name in ("CopyObject", "UploadPartCopy")
    literal = sum(len(part) for part in parts if not part.startswith("{"))
    return _Operation(
        name,
        entry["http"]["method"],
        re.compile(pattern + "/?"),
        frozenset(fixed) | needed,
        {key: value for key, value in fixed.items() if value},
        copies,
        (len(fixed) + len(needed), literal),
    )
