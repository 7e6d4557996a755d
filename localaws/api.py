"""A service of the local AWS that speaks JSON: checked by botocore's model, answered before moto sees the call."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

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


class Model(Protocol):
    """What knows the state and the rules of a service in one region."""

    def answer(self, operation: str, params: Request, /) -> Mapping[str, Any]:
        """Raises Refused."""


M = TypeVar("M", bound=Model)


class Service(Generic[M]):
    """Calls whose signature names `service`, or those of them in `only`: a model a region answers them, none is left to moto."""

    def __init__(
        self, aws: LocalAws, service: str, model: Callable[[str], M], *, invalid: str, only: Collection[str] = ()
    ) -> None:
        """`invalid` is the service's code for a request that botocore's model of it does not allow."""
        self.regions: dict[str, M] = {}
        self._service, self._model, self._invalid, self._only = service, model, invalid, only
        self._turn = threading.Lock()
        aws.recorder.interceptors.append(self.answer)

    def of(self, region: str) -> M:
        with self._turn:
            if region not in self.regions:
                self.regions[region] = self._model(region)
            return self.regions[region]

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
        return self.of(call.region).answer(call.action, request)


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
