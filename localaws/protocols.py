"""Reads requests and writes answers in AWS's protocols, with the models that botocore itself uses.

So no model here can invent a field: an answer with a member that botocore's model lacks is an error.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote
from xml.sax.saxutils import escape

from moto.core.errors import get_error_model
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.serialize import get_serializer_class
from moto.core.utils import get_service_model

from localaws.limits import beyond
from localaws.model import Refused

INVALID = {
    "ec2": "InvalidParameterValue",
    "query": "InvalidParameter",
    "rest-xml": "InvalidArgument",
    "json": "ValidationException",
    "rest-json": "ClientException",
}
"""A service's error code for a value that its model does not allow, by protocol."""
FORMS = frozenset({"ec2", "query"})
"""Protocols that send parameters as a form in the body."""


@dataclass(frozen=True, slots=True)
class Written:
    """An answer as it is sent; `error` is the code of a refusal."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    error: str = ""


@cache
def operation(service: str, name: str) -> Any:
    """Returns botocore's model of an operation; services are named as in boto3."""
    return get_service_model(service).operation_model(name)


def parsed(model: Any, method: str, url: SplitResult, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """Reads the parameters of a request to the operation from its bytes."""
    protocol, service = model.service_model.resolved_protocol, model.service_model.service_name
    values = _Values(parse_qsl(body.decode() if protocol in FORMS else url.query, True))
    found: dict[str, Any] = _parser(protocol)(model).parse(
        {
            "method": method,
            "values": values,
            "headers": headers,
            "body": body,
            "url_path": url.path,
            "url_params": _place(url.netloc, url.path) if service == "s3" else _labels(model, url.path),
        }
    )
    return {name: value for name, value in found.items() if value is not None and value != {}}


class _Values(dict[str, str]):
    """Parameters of a form or of a query, and the names that they are under."""

    @cached_property
    def places(self) -> frozenset[str]:
        """All names, and for each dot in a name the part before it."""
        return frozenset(name[:end] for name in self for end in (*_find_dots(name), len(name)))


def _find_dots(name: str) -> Iterator[int]:
    return (place for place, letter in enumerate(name) if letter == ".")


class _Indexed:
    """Looks up whether a form has anything under a name; moto asks every name of the form, for every structure of the model."""

    def _gonna_recurse(self, query_params: _Values, prefix: str) -> bool:
        return prefix != "" and prefix not in query_params.places


@cache
def _parser(protocol: str) -> Any:
    usual = PROTOCOL_PARSERS[protocol]
    return type("Indexed", (_Indexed, usual), {}) if protocol in FORMS else usual


def answered(
    model: Any, params: Mapping[str, Any], serve: Callable[[], Mapping[str, Any]], invalid: str = ""
) -> Written:
    """Returns what `serve` answers, or the error of the Refused that it raises, after checking the parameters against the model's limits.

    `invalid` is the service's code for a parameter beyond its limits, if it is not the protocol's usual one.
    """
    protocol, service, status = model.service_model.resolved_protocol, model.service_model.service_name, None
    try:
        if problem := beyond(model.input_shape, params):
            raise Refused(invalid or INVALID[protocol], problem)
        result: Any = serve()
    except Refused as refused:
        result, status = refused, refused.status
    written = _serializer(service, protocol)(operation_model=model).serialize(result)
    body = written["body"] or b""
    return Written(
        status or written["status_code"],
        written["headers"],
        body.encode() if isinstance(body, str) else body,
        result.code if isinstance(result, Refused) else "",
    )


@cache
def _error(service: str, code: str) -> Any:
    """Makes the error itself: moto would search all errors of the service, which takes as long as the rest of a call, and would
    warn of errors that a model omits, as most models omit throttles."""
    with warnings.catch_warnings(action="ignore"):
        return get_error_model(Refused(code, ""), get_service_model(service))


class _Exact:
    """Writes only the members that are set, instead of asking for every member of the model; an unknown member is an error."""

    service: str

    def _serialize_error(self, answer: Any, refused: Refused) -> Any:
        serializer: Any = self
        shape, written = _error(self.service, refused.code), serializer.MAP_TYPE()
        serializer._serialize_error_metadata(written, refused, shape)
        return serializer._serialized_error_to_response(answer, refused, shape, written)

    def _serialize_type_structure(self, serialized: Any, value: Any, shape: Any, key: str) -> None:
        if isinstance(value, Refused):
            value = value.details
        wrapper: Any = {} if key else serialized
        for name, one in value.items():
            if one is not None:
                member = shape.members[name]
                self._serialize_structure_member(wrapper, value, member, name)  # type: ignore[attr-defined]
        if key:
            self._default_serialize(serialized, wrapper, shape, key)  # type: ignore[attr-defined]


class _ExactXml(_Exact):
    """Writes XML as one string, in a tenth of the time that moto's parser events take."""

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


def _labels(model: Any, path: str) -> dict[str, str]:
    """Reads the parameters in the path of a REST call. `path` is as it was sent: an ARN in it has its slashes escaped."""
    wanted = model.http["requestUri"].partition("?")[0]
    pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(wanted))
    found = re.fullmatch(pattern, path)
    return {name: unquote(value) for name, value in found.groupdict().items()} if found else {}


def _place(host: str, path: str) -> dict[str, str]:
    """Returns bucket and key of `bucket.s3.region.amazonaws.com/key` or `s3.region.amazonaws.com/bucket/key`."""
    bucket, mark, _ = host.partition(".s3.")
    key = unquote(path[1:])
    if not mark:
        bucket, _, key = key.partition("/")
    return {"Bucket": bucket, "Key": key}
