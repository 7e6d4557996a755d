"""Speaks with the API server of a cluster about MPIJobs, with nothing but the standard library: the same for children and functions.

A person of AWS is known to EKS by a presigned address of sts:GetCallerIdentity, which the API server asks whose it is.
"""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from contract.kubernetes_objects import NEW
from contract.mpi_job import API, BEGAN, ENDED_FOR, JOB_NAME, KIND, PLURAL, read_begin
from contract.pod_network import NETWORKING, POLICIES

PREFIX = "k8s-aws-v1."
LASTS_S = 60
"""Seconds for which a presigned address is valid; EKS takes no longer ones than 15 minutes."""
CLUSTER_HEADER = "x-k8s-aws-id"
TIMEOUT_S = 15.0
PAGE = 500
MERGE, JSON = "application/merge-patch+json", "application/json"
ABSENT, TAKEN = 404, 409
UNCLEAR = (OSError, ValueError, HTTPException, RecursionError)
"""What urllib and json raise where no answer comes, where it is cut, or where it is no document."""


class ClusterProblem(Exception):
    """The API server refused a call, or did not answer; then the status is 0 and it is not known whether the call took effect."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}" if status else message)
        self.status, self.message = status, message


class ClusterGone(ClusterProblem):
    """EKS has no cluster of this name: it is not there, nor anything that was on it."""

    CODE = "ResourceNotFoundException"
    """As EKS says so."""

    def __init__(self, name: str, region: str) -> None:
        super().__init__(
            ABSENT,
            f"kubernetes.cluster: {name} is no cluster in {region}; allowed: the name of a cluster in that region, or {NEW}",
        )


def make_token(address: str) -> str:
    """Returns the bearer's token of whoever presigned this address of GetCallerIdentity, with CLUSTER_HEADER among what is signed."""
    return PREFIX + base64.urlsafe_b64encode(address.encode()).decode().rstrip("=")


STRICTLY = "?fieldValidation=Strict"
"""Without it a server drops fields that it does not know, with a warning alone: an older operator's launcher would be no worker."""


class _StayHere(HTTPRedirectHandler):
    """Follows no address: another host would get the token."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Leaves the answer as it is, which is an error then."""


def open_address(call: Request, context: ssl.SSLContext) -> Any:
    """Returns the answer of this very address. Raises HTTPError, or one of UNCLEAR."""
    return build_opener(HTTPSHandler(context=context), _StayHere).open(call, timeout=TIMEOUT_S)


class KubernetesApi:
    """The MPIJobs of one namespace, and their pods. Methods raise ClusterProblem; none tries twice."""

    def __init__(self, endpoint: str, certificate: str, namespace: str, token: Callable[[], str]) -> None:
        """`certificate`: the authority's, as DescribeCluster has it (base64)."""
        self._endpoint, self._namespace, self._token = endpoint.rstrip("/"), namespace, token
        self._context = ssl.create_default_context(cadata=base64.b64decode(certificate).decode())

    @classmethod
    def of(cls, cluster: Mapping[str, Any], namespace: str, token: Callable[[], str]) -> KubernetesApi:
        """The API of a cluster as DescribeCluster has it: one that is being made, or could not be, has no address."""
        endpoint, certificate = cluster.get("endpoint"), (cluster.get("certificateAuthority") or {}).get("data")
        if not endpoint or not certificate:
            raise ClusterProblem(0, f"the cluster has no address: it is {cluster.get('status')}")
        return cls(endpoint, certificate, namespace, token)

    def create(self, job: Mapping[str, Any]) -> str:
        """Returns what names the new object."""
        uid = _read_metadata(self._call("POST", self._jobs() + STRICTLY, job)).get("uid")
        if not isinstance(uid, str):
            raise ClusterProblem(0, "the answer names no new object")
        return uid

    def close(self, policy: Mapping[str, Any]) -> None:
        """Makes a policy of the network; one of that name that is there is left so."""
        try:
            self._call("POST", f"/apis/{NETWORKING}/v1/namespaces/{self._namespace}/{POLICIES}{STRICTLY}", policy)
        except ClusterProblem as problem:
            if problem.status != TAKEN:
                raise

    def find(self, name: str) -> Mapping[str, Any] | None:
        """Returns the MPIJob; None where there is none of that name."""
        try:
            return self._call("GET", self._jobs(name))
        except ClusterProblem as problem:
            if problem.status == ABSENT:
                return None
            raise

    def list_pods(self, name: str) -> list[Mapping[str, Any]]:
        """Returns the pods of an MPIJob."""
        return list(self._list(f"/api/v1/namespaces/{self._namespace}/pods", f"{JOB_NAME}={name}"))

    def count_pods(self, quota: str) -> int:
        """Returns how many pods of the namespace have not ended, by the status of a quota on pods; 0 where it says nothing yet."""
        found = self._call("GET", f"/api/v1/namespaces/{self._namespace}/resourcequotas/{quote(quota)}")
        status = found.get("status")
        used = status.get("used") if isinstance(status, dict) else None
        given = str(used.get("pods", "0") if isinstance(used, dict) else "0")
        if not given.isdecimal():
            raise ClusterProblem(0, f"the quota counts {given[:20]} pods")
        return int(given)

    def list_jobs(self, selector: str) -> Iterator[Mapping[str, Any]]:
        """Yields the MPIJobs with these labels, a page of them in memory at a time: objects that have ended stay for long."""
        return self._list(self._jobs(), selector)

    def list_nodes(self, selector: str) -> list[Mapping[str, Any]]:
        """Returns the cluster's machines with these labels."""
        return list(self._list("/api/v1/nodes", selector))

    def end(self, name: str, why: str) -> None:
        """Has the operator remove the pods. The object stays, so that its name is not made again; one that is not there is left so."""
        job = self.find(name)
        if job is None:
            return
        change = {
            "metadata": {"annotations": {ENDED_FOR: why, BEGAN: read_begin(job)}},
            "spec": {"runPolicy": {"suspend": True}},
        }
        self._unless_absent("PATCH", name, change, MERGE)

    def label(self, name: str, labels: Mapping[str, str]) -> None:
        """Adds labels to an MPIJob. One that is not there is left so."""
        self._unless_absent("PATCH", name, {"metadata": {"labels": dict(labels)}}, MERGE)

    def delete(self, name: str) -> None:
        """Deletes the object, and its pods with it. One that is not there is left so."""
        self._unless_absent("DELETE", name, {"propagationPolicy": "Background"}, JSON)

    def _unless_absent(self, method: str, name: str, body: Mapping[str, Any], kind: str) -> None:
        try:
            self._call(method, self._jobs(name), body, kind)
        except ClusterProblem as problem:
            if problem.status != ABSENT:
                raise

    def _jobs(self, name: str = "") -> str:
        return f"/apis/{API}/namespaces/{self._namespace}/{PLURAL}" + (f"/{quote(name)}" if name else "")

    def _list(self, path: str, selector: str) -> Iterator[Mapping[str, Any]]:
        more = ""
        while True:
            wanted = {"limit": PAGE, "labelSelector": selector, "continue": more}
            page = self._call("GET", f"{path}?{urlencode({key: one for key, one in wanted.items() if one})}")
            items = page.get("items") or ()
            if not isinstance(items, (list, tuple)) or not all(isinstance(one, dict) for one in items):
                raise ClusterProblem(0, "the answer of the cluster is no list of objects")
            yield from items
            more = str(_read_metadata(page).get("continue") or "")
            if not more:
                return

    def _call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, kind: str = JSON
    ) -> Mapping[str, Any]:
        call = Request(
            f"{self._endpoint}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._token()}", "Content-Type": kind, "Accept": JSON},
        )
        try:
            with open_address(call, self._context) as answer:
                found = json.loads(answer.read())
        except HTTPError as problem:
            raise ClusterProblem(problem.code, _read_message(problem)) from None
        except UNCLEAR as problem:
            raise ClusterProblem(0, f"{type(problem).__name__}: {problem}") from None
        if not isinstance(found, dict):
            raise ClusterProblem(0, "the answer of the cluster is no object")
        return found


def _read_metadata(found: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = found.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _read_message(answer: HTTPError) -> str:
    """Returns the API server's words."""
    body = b""
    try:
        body = answer.read()
        found = json.loads(body)
    except UNCLEAR:
        found = None
    message = found.get("message") if isinstance(found, dict) else None
    return str(message or body[:300].decode(errors="replace") or f"no {KIND}")
