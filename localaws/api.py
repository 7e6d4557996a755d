"""A service of the local AWS that speaks JSON: checked by botocore's model, answered before moto sees the call."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import botocore.loaders
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from localaws.limits import beyond
from localaws.model import Refused
from localaws.recorder import Answer

if TYPE_CHECKING:
    from localaws.recorder import Call, Environ
    from localaws.server import LocalAws

Request = dict[str, Any]
Operation = Callable[["Call", Request], Mapping[str, Any]]
"""The call and its body to the answer. Raises Refused."""


class Service:
    """Calls whose signature names `service`: all are answered here, or those named in `only`, and none of them is left to moto."""

    def __init__(self, service: str, *, invalid: str, answer: Operation, only: Collection[str] = ()) -> None:
        """`invalid` is the service's code for a request that its model does not allow."""
        self._service, self._invalid, self._answer, self._only = service, invalid, answer, only

    def install(self, aws: LocalAws) -> None:
        aws.recorder.interceptors.append(self.answer)

    def answer(self, call: Call, environ: Environ) -> Answer | None:
        if call.service != self._service or (self._only and call.action not in self._only):
            return None
        try:
            return Answer(200, _written(self._done(call, environ)), {"Content-Type": "application/x-amz-json-1.1"})
        except Refused as refused:
            headers = {"Content-Type": "application/x-amz-json-1.1", "x-amzn-ErrorType": refused.code}
            body = {"__type": refused.code, "message": refused.message}
            return Answer(refused.status, _written(body), headers, refused.code)

    def _done(self, call: Call, environ: Environ) -> Mapping[str, Any]:
        request = _request(call, environ)
        shape = service_model(self._service).operation_model(call.action).input_shape
        if shape is not None:
            report = ParamValidator().validate(request, shape)
            if problem := report.generate_report() or beyond(shape, request):
                raise Refused(self._invalid, problem)
        return self._answer(call, request)


@cache
def service_model(service: str) -> ServiceModel:
    return ServiceModel(botocore.loaders.Loader().load_service_model(service, "service-2"), service)


def _request(call: Call, environ: Environ) -> Request:
    """The body, and what the path and the query say."""
    body = environ["wsgi.input"].read(call.size)
    environ["wsgi.input"] = io.BytesIO(body)
    document: Request = json.loads(body) if body else {}
    return document if call.protocol == "json" else {**document, **_labels(call)}


def _labels(call: Call) -> Request:
    """Only TagResource and its like have any."""
    return {"resourceArn": call.parameters["resourceArn"]} if "resourceArn" in call.parameters else {}


def _written(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, default=datetime.timestamp).encode()
