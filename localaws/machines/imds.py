"""Instance metadata (IMDSv2) of one node, on the node's own loopback address.

A real service answers whatever runs on its instance, at an address that leads nowhere else. Here every process of the computer reaches
every address, so the path begins with a secret, which only the node's own variables have.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol
from urllib.parse import unquote

from localaws.plain_http import PlainHandler

TTL_HEADER = "x-aws-ec2-metadata-token-ttl-seconds"
TOKEN_HEADER = "x-aws-ec2-metadata-token"
LONGEST_TTL_S = 21600
LATENCY_S = 0.002
"""The shortest time of an answer."""
CREDENTIALS_S = 6 * 3600
Answering = Callable[[str, Mapping[str, str]], tuple[int, bytes, dict[str, str]]]
"""Path and headers in lower case to status, body and headers."""


class Keys(Protocol):
    """Temporary credentials of a role."""

    @property
    def access_key(self) -> str: ...

    @property
    def secret(self) -> str: ...

    @property
    def token(self) -> str: ...


def _stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """What a node may ask; the functions are called at each request, because their answers change."""

    instance: str
    instance_type: str
    image: str
    rank: int
    address: str
    hostname: str
    mac: str
    region: str
    zone: str
    account: str
    user_data: bytes
    tags: Callable[[], Mapping[str, str] | None]
    """None where the instance was launched without InstanceMetadataTags."""
    role: Callable[[], str]
    """Name of the role in its instance profile, empty for none."""
    credentials: Callable[[], Keys]
    spot_action: Callable[[], Mapping[str, str] | None]
    rebalance: Callable[[], Mapping[str, str] | None] = lambda: None
    tokens_required: bool = True
    group: str = ""
    lost: Callable[[], bool] = lambda: False
    """Whether this request gets no answer."""
    started_at: float = field(default_factory=time.time)

    def answer(self, path: str) -> bytes | None:
        """Returns the body for a path below /latest, None for a path that does not exist."""
        if path == "user-data":
            return self.user_data or None
        if path == "dynamic/instance-identity/document":
            return self._identity()
        tree, _, rest = path.partition("/")
        return self._metadata(rest.rstrip("/")) if tree == "meta-data" else None

    def _metadata(self, path: str) -> bytes | None:
        values = self._values()
        if path.startswith("iam/security-credentials/") and path in values:
            return json.dumps(self._credentials()).encode()
        if path in values:
            return values[path].encode()
        below = {name[len(path) + 1 if path else 0 :] for name in values if not path or name.startswith(f"{path}/")}
        names = {first + ("/" if rest else "") for first, _, rest in (name.partition("/") for name in below)}
        return "\n".join(sorted(names)).encode() or None

    def _values(self) -> dict[str, str]:
        values = {
            "ami-id": self.image,
            "ami-launch-index": str(self.rank),
            "hostname": self.hostname,
            "instance-id": self.instance,
            "instance-life-cycle": "on-demand",
            "instance-type": self.instance_type,
            "local-hostname": self.hostname,
            "local-ipv4": self.address,
            "mac": self.mac,
            "placement/availability-zone": self.zone,
            "placement/region": self.region,
        }
        if self.group:
            values["placement/group-name"] = self.group
        values |= {f"tags/instance/{key}": value for key, value in (self.tags() or {}).items()}
        if action := self.spot_action():
            values["spot/instance-action"] = json.dumps(action)
        if recommended := self.rebalance():
            values["events/recommendations/rebalance"] = json.dumps(recommended)
        if role := self.role():
            values[f"iam/security-credentials/{role}"] = ""  # a listing needs only the name
        return values

    def _credentials(self) -> dict[str, str]:
        keys, now = self.credentials(), time.time()
        return {
            "Code": "Success",
            "Type": "AWS-HMAC",
            "LastUpdated": _stamp(now),
            "Expiration": _stamp(now + CREDENTIALS_S),
            "AccessKeyId": keys.access_key,
            "SecretAccessKey": keys.secret,
            "Token": keys.token,
        }

    def _identity(self) -> bytes:
        document = {
            "accountId": self.account,
            "availabilityZone": self.zone,
            "imageId": self.image,
            "instanceId": self.instance,
            "instanceType": self.instance_type,
            "pendingTime": _stamp(self.started_at),
            "privateIp": self.address,
            "region": self.region,
            "version": "2017-09-30",
        }
        return json.dumps(document, indent=2).encode()


class Imds:
    """The HTTP server. Raises OSError when the address cannot be bound."""

    def __init__(self, metadata: Metadata, address: str) -> None:
        self._metadata = metadata
        self._tokens: dict[str, float] = {}
        self._beginning = f"/{secrets.token_urlsafe(24)}"
        self._silent, self._over = threading.Event(), threading.Event()
        self._server = ThreadingHTTPServer((address, 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True, name="imds")
        self._thread.start()

    @property
    def endpoint(self) -> str:
        """For AWS_EC2_METADATA_SERVICE_ENDPOINT; whoever has it reads this node's metadata."""
        return f"http://{self._server.server_address[0]!s}:{self._server.server_address[1]}{self._beginning}"

    def fall_silent(self) -> None:
        """From now on no request gets an answer, not even a refusal."""
        self._silent.set()

    def stop(self) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def put(self, path: str, headers: Mapping[str, str]) -> tuple[int, bytes, dict[str, str]]:
        """Answers PUT, a session token; header names in lower case."""
        if path != "/latest/api/token":
            return 404, b"", {}
        if headers.get("x-forwarded-for"):
            return 403, b"", {}
        seconds = headers.get(TTL_HEADER, "")
        if not seconds.isdecimal() or not 1 <= int(seconds) <= LONGEST_TTL_S:
            return 400, b"", {}
        token = secrets.token_urlsafe(40)
        self._tokens[token] = time.monotonic() + int(seconds)
        return 200, token.encode(), {TTL_HEADER: seconds}

    def get(self, path: str, headers: Mapping[str, str]) -> tuple[int, bytes, dict[str, str]]:
        """Answers GET: 401 without a valid token, if tokens are required or a token was given; header names in lower case."""
        token = headers.get(TOKEN_HEADER)
        if (token is not None or self._metadata.tokens_required) and self._tokens.get(
            token or "", 0
        ) < time.monotonic():
            return 401, b"", {}
        below = unquote(path).removeprefix("/latest/") if path.startswith("/latest/") else ""
        body = self._metadata.answer(below) if below else None
        return (404, b"", {}) if body is None else (200, body, {"Content-Type": "text/plain"})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        imds = self

        class Handler(PlainHandler):
            def do_PUT(self) -> None:
                self._answer_with(imds.put)

            def do_GET(self) -> None:
                self._answer_with(imds.get)

            def _answer_with(self, answer: Answering) -> None:
                beginning, path = self.path[: len(imds._beginning)], self.path[len(imds._beginning) :]
                if not secrets.compare_digest(beginning.encode(), imds._beginning.encode()):
                    self.answer(404)
                elif not (self._is_lost() or self._is_silent()):
                    status, body, headers = answer(path, {key.lower(): one for key, one in self.headers.items()})
                    time.sleep(LATENCY_S)
                    self.answer(status, body, headers)

            def _is_lost(self) -> bool:
                self.close_connection = lost = imds._metadata.lost()
                return lost

            def _is_silent(self) -> bool:
                """Waits until the server stops and then returns true, if the service has fallen silent."""
                self.close_connection = silent = imds._silent.is_set() and imds._over.wait()
                return silent

        return Handler
