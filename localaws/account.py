"""The account of a local AWS, for all that runs in it: conditions, credentials, clients and timers."""

from __future__ import annotations

import hmac
import random
import secrets
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError
from moto.utilities.arns import parse_arn

from localaws.conditions import Conditions
from localaws.model import ACCOUNT
from localaws.moto_keys import Secret
from localaws.recorder import Recorder, Session
from localaws.surroundings import open_session

DEPLOYER = f"arn:aws:iam::{ACCOUNT}:user/deployer"
"""The person who runs the CDK, reads results and opens the console: never throttled."""
USUAL = Config(retries={"max_attempts": 3}, max_pool_connections=32, read_timeout=900)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Keys with which a role signs its calls."""

    access_key: str
    secret: str
    token: str

    def variables(self) -> dict[str, str]:
        """Returns the environment variables from which SDKs read the keys."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_SESSION_TOKEN": self.token,
        }


class LocalAccount:
    """What services, functions and machines need of the account in which they run."""

    def __init__(self, conditions: Conditions, recorder: Recorder) -> None:
        """`recorder` learns every role and session that gets credentials."""
        self.conditions, self.recorder = conditions, recorder
        self.chance = random.Random(conditions.seed)
        self._seal = secrets.token_bytes(32)  # other users of the computer may reach the endpoint, and know all else
        self.account = ACCOUNT
        self.endpoint = ""
        """Uses `localhost`, because the CDK command line misreads template URLs with any other host."""
        self.outside: dict[str, str] = {}
        """Variables by which functions reach what is not AWS."""
        self.stopping = threading.Event()
        self._clients: dict[tuple[str, str, str, bool, str, Config], Any] = {}
        self._timers: set[threading.Timer] = set()
        self._lock, self._session = threading.Lock(), open_session()

    def client(
        self,
        service: str,
        region: str = "us-east-1",
        *,
        role: str = DEPLOYER,
        throttled: bool = True,
        session: str = "",
        config: Config = USUAL,
    ) -> Any:
        """Returns a boto3 client of the deploying person, or of `role`; `throttled=False` is for AWS's own calls on a role's behalf, and
        `session` may name the service that makes them."""
        named = (service, region, role, throttled, session, config)
        with self._lock:
            if named not in self._clients:
                keys = self.credentials_for(role, throttled=throttled, session=session)
                self._clients[named] = self._session.client(
                    service,
                    region_name=region,
                    endpoint_url=self.endpoint,
                    aws_access_key_id=keys.access_key,
                    aws_secret_access_key=keys.secret,
                    aws_session_token=keys.token,
                    config=config,
                )
            return self._clients[named]

    def environment(self) -> dict[str, str]:
        """Returns the variables that a child process needs to reach this AWS; the caller adds `credentials_for(...).variables()`."""
        return {"AWS_ENDPOINT_URL": self.endpoint}

    def credentials_for(self, role_arn: str, *, throttled: bool = True, session: str = "") -> Credentials:
        """Returns the same keys for the same role and session, which is an instance's id or a function's name; `throttled=False` is for
        AWS's own calls on a role's behalf."""
        known = Session(role=role_arn, throttled=throttled and role_arn != DEPLOYER, name=session)
        return self.hand_out(known, f"{role_arn} {throttled} {session}")

    def hand_out(self, session: Session, about: str) -> Credentials:
        """Returns keys of the session: the same for the same words in this account, and for nobody who does not know its seal."""
        key, secret, token = (self._sealed(f"{part} {about}") for part in ("key", "secret", "token"))
        made = Credentials("ASIA" + key[:16].upper(), secret[:40], token)
        self.recorder.know(made.access_key, session, Secret(made.secret, made.token))
        return made

    def _sealed(self, text: str) -> str:
        return hmac.new(self._seal, text.encode(), "sha256").hexdigest()

    def send_message(self, role: str, queue: str, body: str, attributes: Mapping[str, Any] | None = None) -> None:
        """Sends a message to a queue (by ARN) with a role, as AWS does; loses it if the queue does not accept it."""
        where = parse_arn(queue)
        sqs = self.client("sqs", where.region, role=role, throttled=False)
        url = f"{self.endpoint}/{where.account}/{where.resource_id}"
        with suppress(ClientError):
            sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=dict(attributes or {}))

    def later(self, delay_s: float, function: Callable[[], object]) -> None:
        """Calls `function` in a thread of its own after `delay_s` real seconds, but not after a stop. Prints its errors."""

        def run() -> None:
            with self._lock:
                self._timers.discard(timer)
            if self.stopping.is_set():
                return
            try:
                function()
            except Exception:
                if not self.stopping.is_set():
                    traceback.print_exc()

        timer = threading.Timer(max(delay_s, 0.0), run)
        timer.daemon = True
        with self._lock:
            if self.stopping.is_set():
                return
            self._timers.add(timer)
        timer.start()

    def cancel_timers(self) -> None:
        """Keeps every call that `later` has planned from being made."""
        with self._lock:
            timers, self._timers = self._timers, set()
        for timer in timers:
            timer.cancel()
