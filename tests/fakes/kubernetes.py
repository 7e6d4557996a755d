"""A cluster of EKS behind the calls of contract.kubernetes_api: its API server is the model of the local AWS, its operator a clock."""

from __future__ import annotations

import base64
import importlib
import io
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from email.message import Message
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.error import HTTPError
from urllib.parse import parse_qsl, urlsplit
from urllib.request import Request

import pytest
from botocore.exceptions import HTTPClientError
from botocore.session import get_session

from contract import kubernetes_api
from contract.kubernetes_api import PREFIX
from localaws.model import Refused
from localaws.services.kubernetes_model import JOBS, KubernetesModel
from localaws.sink.certificate import certificate
from tests.fakes.clock import Clock
from tests.fakes.wire import HOME, Call

NAME = "lab"
ADDRESS = "https://cluster.example"


class FakeCluster(KubernetesModel):
    """One cluster, by the name of NAME."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock.time)
        self.refusals: dict[str, str] = {}
        """Names of jobs that the server does not take, to its words."""
        self.quota_problem = ""
        """Words with which the server forbids to see the quota."""
        self.is_gone = False

    def describe(self, name: str) -> dict[str, Any]:
        """As EKS answers DescribeCluster."""
        if name != NAME or self.is_gone:
            raise Refused("ResourceNotFoundException", f"No cluster found for name: {name}.", 404)
        return {"cluster": {"name": NAME, "endpoint": ADDRESS, "certificateAuthority": {"data": authority()}}}

    def serve(self, params: dict[str, Any]) -> dict[str, Any]:
        """Answers one call, whose token has to be an address of STS; clients of the fake sign nothing."""
        if self.is_gone:
            raise HTTPClientError(error="its address names no host")
        check_token(params["token"])
        body = params["body"]
        if self.quota_problem and "/resourcequotas/" in params["target"]:
            return {"status": 403, "document": {"message": self.quota_problem}}
        if params["method"] == "POST" and (words := self.refusals.get(body["metadata"]["name"])):
            return {"status": 422, "document": {"message": words}}
        status, document = self.answer(params["method"], params["target"], body, params["kind"])
        return {"status": status, "document": document}


def check_token(token: str) -> None:
    assert _read_token(token).startswith(f"https://sts.{HOME}.amazonaws.com/")


def _read_token(token: str) -> str:
    assert token.startswith(PREFIX)
    padded = token.removeprefix(PREFIX) + "=" * (-len(token.removeprefix(PREFIX)) % 4)
    return base64.urlsafe_b64decode(padded).decode()


def read_tokens(calls: Iterable[Call]) -> list[tuple[str, str, int]]:
    """Returns of each call to a cluster what STS is asked for, what of it is signed, and for how many seconds it is good."""
    found = []
    for token in (one.params["token"] for one in calls if one.service == "kubernetes"):
        query = dict(parse_qsl(urlsplit(_read_token(token)).query))
        found.append((query["Action"], query["X-Amz-SignedHeaders"], int(query["X-Amz-Expires"])))
    return found


def sign(patch: pytest.MonkeyPatch, where: str) -> None:
    """Clients of STS that a module makes sign, unlike all others of the fake."""
    make = importlib.import_module(where).client

    def client(service: str, region: str, *given: Any) -> Any:
        if service != "sts":
            return make(service, region, *given)
        return get_session().create_client("sts", region, aws_access_key_id="AKIA", aws_secret_access_key="secret")

    patch.setattr(f"{where}.client", client)


@contextmanager
def reached(behind: Callable[[Call], dict[str, Any]]) -> Iterator[None]:
    """Calls to a cluster reach `behind`, as those of boto3's clients do."""

    def open_(call: Request, _: object) -> io.BytesIO:
        body = call.data
        params = {
            "method": call.get_method(),
            "target": call.full_url.removeprefix(ADDRESS),
            "token": str(call.get_header("Authorization")).removeprefix("Bearer "),
            "kind": str(call.get_header("Content-type")),
            "body": json.loads(body) if isinstance(body, bytes) else None,
        }
        what = "Job" if JOBS.fullmatch(urlsplit(params["target"]).path) else "Object"
        found: dict[str, Any]
        try:
            found = behind(Call("kubernetes", f"{params['method'].title()}{what}", HOME, params))
        except Refused as problem:
            status = 429 if "Throttl" in problem.code else problem.status
            found = {"status": status, "document": {"message": problem.message}}
        except HTTPClientError as problem:
            raise TimeoutError(str(problem)) from None
        answer = io.BytesIO(json.dumps(found["document"]).encode())
        if found["status"] >= 400:
            raise HTTPError(call.full_url, found["status"], "", Message(), answer)
        return answer

    with mock.patch.object(kubernetes_api, "open_address", open_):
        yield


@cache
def authority() -> str:
    """A certificate as EKS gives it, of an authority that signs nothing here."""
    with tempfile.TemporaryDirectory() as folder:
        return base64.b64encode(certificate(Path(folder))[0].read_bytes()).decode()
