"""A service of the local AWS that a model answers: read and written by botocore's model of it, before moto sees the call."""

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
