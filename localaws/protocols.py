"""AWS's protocols both ways: requests are read and answers written by the models that botocore itself uses.

So neither a fake nor the local AWS can invent a field: an answer with a member that the model lacks is an error.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
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
"""What a service calls a value that its model does not allow, by protocol."""
FORMS = frozenset({"ec2", "query"})
"""Protocols whose parameters are a form in the body."""


@dataclass(frozen=True, slots=True)
class Written:
    """An answer as it goes over the network; `error` is the code of a refusal."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    error: str = ""


@cache
def operation(service: str, name: str) -> Any:
    """botocore's model of an operation; services are named as boto3 names them."""
    return get_service_model(service).operation_model(name)


def parsed(model: Any, method: str, url: SplitResult, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """The parameters of a request to the operation, read from its bytes."""
    protocol, service = model.service_model.resolved_protocol, model.service_model.service_name
    values: Mapping[str, str] = dict(parse_qsl(body.decode() if protocol in FORMS else url.query, True))
    found: dict[str, Any] = PROTOCOL_PARSERS[protocol](model).parse(
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


def answered(
    model: Any, params: Mapping[str, Any], serve: Callable[[], Mapping[str, Any]], invalid: str = ""
) -> Written:
    """What `serve` answers, or the error that it raises as Refused, once the parameters are within the model's limits.

    `invalid` is the service's code for a parameter beyond them, where it is not its protocol's usual one.
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


def _labels(model: Any, path: str) -> dict[str, str]:
    """The parameters in the path of a REST call. `path` is as it was sent: an ARN in it has its slashes escaped."""
    wanted = model.http["requestUri"].partition("?")[0]
    pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(wanted))
    found = re.fullmatch(pattern, path)
    return {name: unquote(value) for name, value in found.groupdict().items()} if found else {}


def _place(host: str, path: str) -> dict[str, str]:
    """Bucket and key of `bucket.s3.region.amazonaws.com/key` or `s3.region.amazonaws.com/bucket/key`."""
    bucket, mark, _ = host.partition(".s3.")
    key = unquote(path[1:])
    if not mark:
        bucket, _, key = key.partition("/")
    return {"Bucket": bucket, "Key": key}
