"""EKS and one cluster of it: DescribeCluster, who may speak with the cluster, and its API server over TLS on a loopback port.

No API server of Kubernetes could be had here, in no registry of packages. This one knows jobs of MPI, their pods and machines
(kubernetes_model.py) and validates with the schemas of the operator's release and of Kubernetes (kubernetes_schema.py); who speaks is read
from the token, as EKS reads it: a presigned address of STS, for this very cluster.
"""

from __future__ import annotations

import base64
import io
import json
import ssl
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from localaws.api import Service
from localaws.model import Refused
from localaws.services import cloudformation
from localaws.services.cloudformation import Client, Kind, Properties
from localaws.services.kubernetes_model import KubernetesModel, refuse
from localaws.services.kubernetes_pods import Operator
from localaws.signatures import has_expired, is_by, read_signature
from localaws.sink.certificate import certificate

if TYPE_CHECKING:
    from localaws.server import LocalAws

PREFIX = "k8s-aws-v1."
NOT_SHOWN = (
    "Kubernetes: the API server, the operator of MPIJobs and the kubelet are place-holders; an MPIJob is validated with the operator's own "
    "schema, a pod is processes of this computer in the root of its image, sshd is a script, and names of pods become addresses",
    "a cluster of EKS: that it is made, that its machines come and go, and what its roles may do",
)
"""What a rehearsed line on Kubernetes does not show, for the printed result."""
_current: list[Cluster] = []


def install(aws: LocalAws) -> None:
    """Installs DescribeCluster and the types of CloudFormation; `begin` makes a cluster."""
    cloudformation.forget_models()
    _current.clear()
    Service(aws, "eks", lambda _: Eks(), invalid="InvalidParameterException", only=("DescribeCluster",))


def begin(aws: LocalAws, name: str, region: str) -> Cluster:
    """Starts a cluster, which the account has from now on."""
    made = Cluster(aws, name, region)
    _current[:] = [made]
    return made


def clusters() -> list[Cluster]:
    """Lists the clusters of the local AWS that was installed last."""
    return list(_current)


class Eks:
    """The one call that is answered."""

    def answer(self, operation: str, params: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002
        for one in _current:
            if one.name == params["name"]:
                return {"cluster": one.describe()}
        raise Refused("ResourceNotFoundException", f"No cluster found for name: {params['name']}.", 404)


class Cluster:
    """One cluster. `members` are the roles that may speak with it, to their groups; the role of pods is by namespace and account."""

    def __init__(self, aws: LocalAws, name: str, region: str) -> None:
        self._aws, self.name, self.region = aws, name, region
        self.members: dict[str, tuple[str, ...]] = {}
        self.pod_roles: dict[tuple[str, str], str] = {}
        self.model = KubernetesModel(time.time)
        self._turn = threading.RLock()
        self.operator = Operator(aws, self.model, region, self._turn, self.pod_roles)
        trusted, chain = certificate(aws.work / "clusters" / name)
        self._authority = base64.b64encode(trusted.read_bytes()).decode()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name=f"cluster {name}", daemon=True).start()
        aws.at_stop(self._stop)

    def describe(self) -> Mapping[str, Any]:
        return {
            "name": self.name,
            "arn": f"arn:aws:eks:{self.region}:{self._aws.account}:cluster/{self.name}",
            "endpoint": f"https://127.0.0.1:{self._server.server_address[1]}",
            "certificateAuthority": {"data": self._authority},
            "status": "ACTIVE",
        }

    def serve(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, dict[str, Any]]:
        """Answers one call to the API server."""
        if not self._knows(headers.get("Authorization", "")):
            return refuse(401, "Unauthorized", "Unauthorized")
        try:
            given = json.loads(body) if body else None
        except ValueError:
            return refuse(400, "BadRequest", "the body is not JSON")
        with self._turn:
            return self.model.answer(method, target, given, headers.get("Content-Type", ""))

    def _knows(self, authorization: str) -> bool:
        """Whether the token is of a member, valid, and signed for this cluster."""
        token = authorization.removeprefix(f"Bearer {PREFIX}")
        try:
            address = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
        except ValueError:
            return False
        parts = urlsplit(address)
        environ = {
            "REQUEST_METHOD": "GET",
            "RAW_URI": f"{parts.path}?{parts.query}",
            "HTTP_HOST": parts.netloc,
            "HTTP_X_K8S_AWS_ID": self.name,
            "CONTENT_LENGTH": "0",
            "wsgi.input": io.BytesIO(),
        }
        signature = read_signature(environ)
        if signature is None or "x-k8s-aws-id" not in signature.headers or has_expired(signature, time.time()):
            return False
        secret = self._aws.recorder.secret_of(signature.access_key)
        if secret is None or not is_by(environ, signature, secret.value):
            return False
        return self._aws.recorder.caller(signature.access_key) in self.members

    def _stop(self) -> None:
        self.operator.stop()
        self._server.shutdown()
        self._server.server_close()


def _handler(cluster: Cluster) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, document = cluster.serve(self.command, self.path, dict(self.headers), body)
            said = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def do_GET(self) -> None:
            self._answer()

        do_POST = do_PATCH = do_DELETE = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Logs nothing."""

    return Handler


def _admit(_: Client, name: str, properties: Properties) -> str:
    for one in _current:
        if one.name == properties["ClusterName"]:
            one.members[properties["PrincipalArn"]] = tuple(properties.get("KubernetesGroups", ()))
    return name


def _forget(_: Client, __: str, properties: Properties) -> None:
    for one in _current:
        one.members.pop(properties["PrincipalArn"], None)


def _give(_: Client, name: str, properties: Properties) -> str:
    for one in _current:
        if one.name == properties["ClusterName"]:
            one.pod_roles[properties["Namespace"], properties["ServiceAccount"]] = properties["RoleArn"]
    return name


def _take(_: Client, __: str, properties: Properties) -> None:
    for one in _current:
        one.pod_roles.pop((properties["Namespace"], properties["ServiceAccount"]), None)


MODELS = cloudformation.models(
    {
        "AWS::EKS::AccessEntry": Kind(_admit, _forget),
        "AWS::EKS::PodIdentityAssociation": Kind(_give, _take),
    }
)
