"""Real boto3 clients without a network: botocore writes the request's bytes, the fake reads them, and answers in bytes."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import formatdate, parsedate_to_datetime
from functools import cache
from typing import Any
from unittest import mock
from urllib.parse import urlencode, urlsplit

import boto3
import botocore
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config
from botocore.retries import quota

from aws import breaker, clients, prices
from localaws import protocols

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
    prices.forget()  # nor what they were told of another account's prices
    breaker.regions.clear()
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
    model, headers = protocols.operation(service, operation), {k: _text(v) for k, v in request.headers.items()}
    params = protocols.parsed(model, str(request.method), urlsplit(request.url), headers, _body(request.body, headers))
    call = Call(service, operation, _region(request.url), params)
    behind = _plug.behind
    written = protocols.answered(model, params, lambda: behind(call))
    told = {"Date": formatdate(_plug.now(), usegmt=True), "x-amzn-RequestId": f"request-{next(_requests)}"}
    # An error of HEAD has no body, so that clients know its status alone.
    body = b"" if request.method == "HEAD" else written.body
    return AWSResponse(request.url, written.status, {**written.headers, **told}, _Raw(body))  # type: ignore[arg-type]


class _Raw(io.BytesIO):
    """A body as urllib3 hands it over."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        while contents := self.read():
            yield contents


def _bytes(body: str | bytes) -> bytes:
    return body.encode() if isinstance(body, str) else body


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


def _region(url: str) -> str:
    """The part of the host before `amazonaws.com`."""
    return urlsplit(url).netloc.removesuffix(".amazonaws.com").split(".")[-1]
