"""The local AWS: moto's server application on a loopback port, completed by `gaps`, all in this process."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import random
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import boto3
from botocore.config import Config
from moto.core.base_backend import BackendDict
from moto.core.config import default_user_config
from moto.core.model_instances import reset_model_data
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from localaws.conditions import Conditions
from localaws.machines.mischief import Mischief, Peace
from localaws.recorder import Recorder, Session
from localaws.workers import Workers

ACCOUNT = "123456789012"
DEPLOYER = f"arn:aws:iam::{ACCOUNT}:user/deployer"
"""The person who runs the CDK, reads results and opens the console: never throttled."""
GAPS = (
    "jsonata",
    "stepfunctions",
    "executions",
    "lambda_functions",
    "events",
    "scheduler",
    "queues",
    "metrics",
    "logs",
    "alarms",
    "pricing",
    "iam",
    "sts",
    "s3",
    "s3_faults",
    "throttling",
    "dynamodb",
    "dynamodb_streams",
)
"""Modules of `localaws.services` in every local AWS; `LocalAws(gaps=...)` adds others. Each has `install(aws)`."""
USUAL = Config(retries={"max_attempts": 3}, max_pool_connections=32, read_timeout=900)
_ABSENT = object()
_ONE = threading.Lock()


@dataclass(frozen=True, slots=True)
class Credentials:
    """Keys by which the recorder recognises a role."""

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


class _QuietHandler(MotoRequestHandler):  # type: ignore[misc]
    protocol_version = "HTTP/1.1"

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Logs nothing: the recorder has every request."""


class LocalAws:
    """One account in every region, empty at `start()`. A context manager; one at a time in a process, because moto's state is global."""

    def __init__(
        self,
        conditions: Conditions | None = None,
        *,
        gaps: Sequence[str] = (),
        work: Path | None = None,
        echo: Callable[[str, str], None] | None = None,
        mischief: Mischief | None = None,
    ) -> None:
        """`gaps` are further modules of `localaws.services`; `work` holds unpacked functions (default: a folder that `stop()` deletes);
        `echo(function, line)` receives every line that a function prints; `mischief` applies faults to single machines."""
        self.mischief: Mischief = mischief or Peace()
        self.conditions = conditions or Conditions()
        self.chance = random.Random(self.conditions.seed)
        self.account = ACCOUNT
        self.recorder = Recorder(self._application())
        self._temporary = tempfile.TemporaryDirectory(prefix="local-aws-") if work is None else None
        self.work = (work or Path(self._temporary.name if self._temporary else "")).resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        self.workers = Workers(self, self.work, echo)
        self._gaps = (*GAPS, *gaps)
        self._undo: list[Callable[[], object]] = []
        self._clients: dict[tuple[str, str, str, bool, Config], Any] = {}
        self._before_stop: list[Callable[[], None]] = []
        self._timers: set[threading.Timer] = set()
        self._server: Any = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._emit: Callable[[str, str, Mapping[str, Any], Sequence[str], str], None] | None = None
        self.lost_events: list[Mapping[str, Any]] = []
        """Events of which no copy arrived anywhere, oldest first."""
        self.endpoint = ""
        """Uses `localhost`, because the CDK command line misreads template URLs with any other host."""
        self.outside: dict[str, str] = {}
        """Variables by which functions reach what is not AWS."""
        self.stopping = threading.Event()

    @staticmethod
    def _application() -> Any:
        return DomainDispatcherApplication(create_backend_app)

    # life

    def start(self) -> LocalAws:
        """Resets moto, installs the gaps, listens. Raises RuntimeError while another local AWS runs in this process."""
        if not _ONE.acquire(blocking=False):
            raise RuntimeError("a local AWS runs already in this process, and moto knows only one")
        try:
            self._reset()
            server = make_server("127.0.0.1", 0, self.recorder, threaded=True, request_handler=_QuietHandler)
            self._server = server
            self.endpoint = f"http://localhost:{server.server_port}"
            self.set_variable("MOTO_PORT", str(server.server_port))
            for gap in self._gaps:
                import_module(f"localaws.services.{gap}").install(self)
            self._thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="local-aws", daemon=True)
            self._thread.start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Ends timers, workers and the server, and reverts every patch of moto; an error does not keep the rest from ending."""
        self.stopping.set()
        with contextlib.ExitStack() as ending:  # callbacks run in reverse order
            ending.callback(_ONE.release)
            if self._temporary:
                ending.callback(self._temporary.cleanup)
            ending.callback(self._reset)
            for undo in self._undo:
                ending.callback(undo)
            if self._server:
                ending.callback(self._server.server_close)
            if self._server and self._thread:
                ending.callback(self._thread.join)
                ending.callback(self._server.shutdown)
            ending.callback(self.workers.stop)
            ending.callback(self._cancel_timers)
            for function in self._before_stop:
                ending.callback(function)

    def _cancel_timers(self) -> None:
        with self._lock:
            timers, self._timers = self._timers, set()
        for timer in timers:
            timer.cancel()

    def __enter__(self) -> LocalAws:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @staticmethod
    def _reset() -> None:
        BackendDict.reset()
        reset_model_data()

    # access

    def client(
        self,
        service: str,
        region: str = "us-east-1",
        *,
        role: str = DEPLOYER,
        throttled: bool = True,
        config: Config = USUAL,
    ) -> Any:
        """Returns a boto3 client of the deploying person, or of `role`; `throttled=False` is for AWS's own calls on a role's behalf."""
        named = (service, region, role, throttled, config)
        with self._lock:
            if named not in self._clients:
                keys, session = self.credentials_for(role, throttled=throttled), cast(Any, boto3.session.Session())
                self._clients[named] = session.client(
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
        digest = hashlib.sha256(f"{role_arn} {throttled} {session}".encode()).hexdigest()
        key = "ASIA" + digest[:16].upper()
        self.recorder.know(key, Session(role=role_arn, throttled=throttled and role_arn != DEPLOYER, name=session))
        return Credentials(key, digest[16:56], f"session-{digest[56:]}")

    # for the gaps

    def patch(self, target: Any, name: str, value: Any) -> Any:
        """Sets an attribute (or a dict's key) of moto until `stop()`; returns the former value."""
        if isinstance(target, dict):
            before = target.get(name, _ABSENT)
            target[name] = value
            self._undo.append(lambda: target.pop(name) if before is _ABSENT else target.update({name: before}))
            return before
        raw = vars(target).get(name, _ABSENT)
        before = getattr(target, name, None)
        setattr(target, name, value)
        self._undo.append(lambda: delattr(target, name) if raw is _ABSENT else setattr(target, name, raw))
        return before

    def wrap(self, target: Any, name: str, around: Callable[..., Any]) -> None:
        """Replaces a method of moto until `stop()`; `around` gets the original method, then the arguments of the call."""
        original, raw = getattr(target, name), inspect.getattr_static(target, name)

        def wrapped(*given: Any, **named: Any) -> Any:
            return around(original, *given, **named)

        of_class = isinstance(raw, (classmethod, staticmethod))
        self.patch(target, name, staticmethod(wrapped) if of_class else wrapped)

    def at_stop(self, function: Callable[[], None]) -> None:
        """Calls `function` first when this AWS stops, while everything still works; the last registered function is called first."""
        self._before_stop.append(function)

    def set_variable(self, name: str, value: str) -> None:
        """Sets an environment variable of this process for moto, until `stop()`."""
        before = os.environ.get(name)
        os.environ[name] = value
        self._undo.append(lambda: os.environ.pop(name, None) if before is None else os.environ.update({name: before}))

    def configure(self, service: str, **values: Any) -> None:
        """Sets moto's own options for a service, until `stop()`."""
        self.patch(default_user_config, service, {**default_user_config.get(service, {}), **values})

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

    def on_emit(self, bus: Callable[[str, str, Mapping[str, Any], Sequence[str], str], None]) -> None:
        """Sets the function that delivers events (`gaps.events`)."""
        self._emit = bus

    def emit(
        self, source: str, detail_type: str, detail: Mapping[str, Any], resources: Sequence[str], region: str
    ) -> None:
        """Emits an AWS service's event: late, sometimes lost, sometimes doubled, as the conditions say."""
        if self._emit and not self.stopping.is_set():
            self._emit(source, detail_type, detail, resources, region)
