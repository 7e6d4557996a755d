"""Real boto3 clients without a network: botocore writes the request's bytes, the fake reads them, and answers in bytes.

Requests are parsed and answers serialised by the models that botocore itself uses, so that neither side can invent a field.
"""

from __future__ import annotations

import io
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import formatdate, parsedate_to_datetime
from functools import cache
from typing import Any
from unittest import mock
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit
from xml.sax.saxutils import escape

import boto3
import botocore
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config
from botocore.retries import quota
from moto.core.errors import get_error_model
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.serialize import get_serializer_class
from moto.core.utils import get_service_model

from aws import clients
from localaws.limits import beyond
from localaws.model import Refused

HOME = "eu-central-1"
"""Region of clients that name none: a function's own."""
SERVICES = {"sfn": "stepfunctions", "cloudwatch-logs": "logs", "secrets-manager": "secretsmanager"}
"""Hyphenised service ids, where they differ from boto3's names."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request that reached AWS."""

    service: str
    operation: str
    region: str
    params: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.service}:{self.operation}"


Behind = Callable[[Call], dict[str, Any]]
"""Takes a call and returns the operation's output; raises Refused, or a botocore HTTPClientError for a lost answer."""


@dataclass
class _Plug:
    behind: Behind | None = None
    now: Callable[[], float] = lambda: 0.0


_plug = _Plug()
_quotas: list[quota.RetryQuota] = []
_requests = itertools.count()


@contextmanager
def connected(behind: Behind, now: Callable[[], float]) -> Iterator[None]:
    """Every client that `boto3.client` makes in this block talks to `behind`; clients are made once a process."""
    assert _plug.behind is None, "another fake is connected"
    for one in _quotas:  # clients outlive a test, what they remember of its failures must not
        one.__init__()  # type: ignore[misc]
    _plug.behind, _plug.now = behind, now
    clients.client.cache_clear()  # what the functions keep may be none of these
    try:
        with mock.patch.object(boto3, "client", client):
            yield
    finally:
        clients.client.cache_clear()
        _plug.behind = None


def client(service: str, region_name: str | None = None, config: Config | None = None) -> Any:
    """In the place of `boto3.client`."""
    return _client(service, region_name or HOME, config)


UNNAMED = Config(user_agent="fake")
"""Composing the usual User-Agent takes as long as a call of the fake."""


@cache
def _client(service: str, region: str, config: Config | None) -> Any:
    made = quota.RetryQuota

    def remembered() -> quota.RetryQuota:
        _quotas.append(made())
        return _quotas[-1]

    with mock.patch.object(quota, "RetryQuota", remembered):
        session: Any = _session()
        found = session.client(service, region_name=region, config=(config or Config()).merge(UNNAMED))
    found.get_paginator = cache(found.get_paginator)  # which makes a class, with documentation, every time
    _remember_endpoints(found._ruleset_resolver)
    return found


def _remember_endpoints(resolver: Any) -> None:
    """An endpoint depends on the client and the bucket; working it out takes a fifth of a call."""
    construct, known = resolver.construct_endpoint, dict[tuple[str, str], Any]()

    def construct_endpoint(operation_model: Any, call_args: Mapping[str, Any], request_context: Any) -> Any:
        place = (operation_model.name, call_args.get("Bucket", ""))
        if place not in known:
            known[place] = construct(operation_model, call_args, request_context)
        return known[place]

    resolver.construct_endpoint = construct_endpoint


@cache
def _session() -> boto3.session.Session:
    session = boto3.session.Session(aws_access_key_id="AKIAFAKE", aws_secret_access_key="fake", region_name=HOME)
    events: Any = session.events
    events.register("before-send", _answer)
    events.register_first("choose-signer", lambda **_: botocore.UNSIGNED)  # nobody here reads a signature
    session._session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_time)
    return session


def _time(value: Any) -> datetime:
    """botocore's own guesses the format, which takes longer than all the rest of an answer."""
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, timezone.utc)
    return datetime.fromisoformat(value) if value[:4].isdecimal() else parsedate_to_datetime(value)


def _answer(request: AWSPreparedRequest, event_name: str, **_: Any) -> AWSResponse:
    """In the place of the network: a `before-send` hook that answers keeps botocore from sending."""
    assert _plug.behind is not None, "no fake is connected"
    identity, operation = event_name.split(".")[1:]
    service = SERVICES.get(identity, identity)
    model = _operation(service, operation)
    call = Call(service, operation, _region(request.url), _parsed(service, model, request))
    try:
        if problem := beyond(model.input_shape, call.params):
            raise Refused(INVALID[model.service_model.resolved_protocol], problem)
        result: Any = _plug.behind(call)
        status = None
    except Refused as refused:
        result, status = refused, refused.status
    written = _serializer(service, model.service_model.resolved_protocol)(operation_model=model).serialize(result)
    headers = {
        **written["headers"],
        "Date": formatdate(_plug.now(), usegmt=True),
        "x-amzn-RequestId": f"request-{next(_requests)}",
    }
    body = written["body"] or b""
    if request.method == "HEAD":
        body = b""  # an error of HEAD has no body, so that clients know its status alone
    return AWSResponse(request.url, status or written["status_code"], headers, _Raw(_bytes(body)))  # type: ignore[arg-type]


INVALID = {
    "ec2": "InvalidParameterValue",
    "query": "InvalidParameter",
    "rest-xml": "InvalidArgument",
    "json": "ValidationException",
    "rest-json": "ClientException",
}
"""What a service calls a value that its model does not allow, by protocol."""
FORMS = frozenset({"ec2", "query"})
"""Protocols whose parameters are a form in the body."""


class _Raw(io.BytesIO):
    """A body as urllib3 hands it over."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        while contents := self.read():
            yield contents


def _bytes(body: str | bytes) -> bytes:
    return body.encode() if isinstance(body, str) else body


@cache
def _operation(service: str, operation: str) -> Any:
    return get_service_model(service).operation_model(operation)


@cache
def _error(service: str, code: str) -> Any:
    """moto looks through all errors of the service for it, which takes as long as all the rest of a call; and it warns of
    those that a model leaves out, as most models do with a throttle."""
    with warnings.catch_warnings(action="ignore"):
        return get_error_model(Refused(code, ""), get_service_model(service))


class _Exact:
    """Writes what is there, instead of asking for every member of the model; a member that the model lacks is an error."""

    service: str

    def _serialize_error(self, answer: Any, refused: Refused) -> Any:
        serializer: Any = self
        shape, written = _error(self.service, refused.code), serializer.MAP_TYPE()
        serializer._serialize_error_metadata(written, refused, shape)
        return serializer._serialized_error_to_response(answer, refused, shape, written)

    def _serialize_type_structure(self, serialized: Any, value: Any, shape: Any, key: str) -> None:
        if isinstance(value, Refused):
            return
        wrapper: Any = {} if key else serialized
        for name, one in value.items():
            if one is not None:
                member = shape.members[name]
                self._serialize_structure_member(wrapper, value, member, name)  # type: ignore[attr-defined]
        if key:
            self._default_serialize(serialized, wrapper, shape, key)  # type: ignore[attr-defined]


class _ExactXml(_Exact):
    """moto writes XML by way of events of a parser; a string at once takes a tenth of the time."""

    def _serialize_body(self, body: Any) -> str:
        parts: list[str] = []
        for name, value in body.items():
            _xml(name, value, parts)
        return "".join(parts)


def _xml(name: str, value: Any, parts: list[str]) -> None:
    if isinstance(value, list):
        for one in value:
            _xml(name, one, parts)
    elif isinstance(value, dict):
        marks = "".join(f' {key[1:]}="{escape(one)}"' for key, one in value.items() if key[0] == "@")
        parts.append(f"<{name}{marks}>")
        for key, one in value.items():
            if key[0] != "@":
                _xml(key, one, parts)
        parts.append(f"</{name}>")
    else:
        parts.append(f"<{name}>{escape(str(value))}</{name}>")


@cache
def _serializer(service: str, protocol: str) -> Any:
    exact = _Exact if protocol in {"json", "rest-json"} else _ExactXml
    return type("Exact", (exact, get_serializer_class(service, protocol)), {"service": service})


def _parsed(service: str, model: Any, request: AWSPreparedRequest) -> dict[str, Any]:
    """The parameters, read from the bytes that would have gone over the network."""
    url, protocol = urlsplit(request.url), model.service_model.resolved_protocol
    headers = {name: _text(value) for name, value in request.headers.items()}
    body = _body(request.body, headers)
    values: Mapping[str, str] = dict(parse_qsl(body.decode() if protocol in FORMS else url.query, True))
    parser = PROTOCOL_PARSERS[protocol](model)
    found: dict[str, Any] = parser.parse(
        {
            "method": request.method,
            "values": values,
            "headers": headers,
            "body": body,
            "url_path": url.path,
            "url_params": _place(url.netloc, url.path) if service == "s3" else {},
        }
    )
    return {name: value for name, value in found.items() if value is not None and value != {}}


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _body(body: Any, headers: Mapping[str, str]) -> bytes:
    if isinstance(body, Mapping):  # a form that nobody has encoded yet
        return urlencode(body).encode()
    raw: bytes = b"" if body is None else _bytes(body if isinstance(body, str | bytes) else body.read())
    return _unchunked(raw) if "aws-chunked" in headers.get("Content-Encoding", "") else raw


def _unchunked(raw: bytes) -> bytes:
    """S3's own chunks: `<length in hex>CRLF<bytes>CRLF`, until one of length 0 and a checksum."""
    whole, rest = b"", raw
    while True:
        length, _, rest = rest.partition(b"\r\n")
        if not (size := int(length.partition(b";")[0], 16)):
            return whole
        whole, rest = whole + rest[:size], rest[size + 2 :]


def _place(host: str, path: str) -> dict[str, str]:
    """Bucket and key of `bucket.s3.region.amazonaws.com/key` or `s3.region.amazonaws.com/bucket/key`."""
    bucket, mark, _ = host.partition(".s3.")
    key = unquote(path[1:])
    if not mark:
        bucket, _, key = key.partition("/")
    return {"Bucket": bucket, "Key": key}


def _region(url: str) -> str:
    """The part of the host before `amazonaws.com`."""
    return urlsplit(url).netloc.removesuffix(".amazonaws.com").split(".")[-1]
