"""Lets a model answer the calls to a service of the local AWS: botocore's model reads and writes them, and moto never sees them."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from botocore.validate import ParamValidator

from localaws import protocols
from localaws.model import Refused
from localaws.recorder import Answer

if TYPE_CHECKING:
    from localaws.recorder import Call, Environ
    from localaws.server import LocalAws

Request = dict[str, Any]


class Model(Protocol):
    """Keeps the state and the rules of a service in one region."""

    def answer(self, operation: str, params: Request, /) -> Mapping[str, Any]:
        """Answers a call. Raises Refused."""


M = TypeVar("M", bound=Model)


class Service(Generic[M]):
    """The calls whose signature names `service`, or only those in `only`; a model per region answers them, and moto answers none."""

    def __init__(
        self, aws: LocalAws, service: str, model: Callable[[str], M], *, invalid: str, only: Collection[str] = ()
    ) -> None:
        """`invalid` is the service's error code for a request that botocore's model does not allow."""
        self.regions: dict[str, M] = {}
        self._service, self._model, self._invalid, self._only = service, model, invalid, only
        self._turn = threading.Lock()
        aws.recorder.interceptors.append(self.answer)

    def of(self, region: str) -> M:
        with self._turn:
            if region not in self.regions:
                self.regions[region] = self._model(region)
            return self.regions[region]

    def takes(self, call: Call) -> bool:
        return call.service == self._service and (not self._only or call.action in self._only)

    def answer(self, call: Call, environ: Environ) -> Answer | None:
        if not self.takes(call):
            return None
        model = protocols.operation(self._service, call.action)
        body = environ["wsgi.input"].read(call.size)
        environ["wsgi.input"] = io.BytesIO(body)
        params = protocols.parsed(model, environ["REQUEST_METHOD"], urlsplit(environ["RAW_URI"]), {}, body)

        def done() -> Mapping[str, Any]:
            if model.input_shape and (
                problem := ParamValidator().validate(params, model.input_shape).generate_report()
            ):
                raise Refused(self._invalid, problem)
            return self.of(call.region).answer(call.action, params)

        written = protocols.answered(model, params, done, self._invalid)
        return Answer(written.status, written.body, written.headers, written.error)
