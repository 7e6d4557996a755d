"""The local AWS: moto's server application on a loopback port, completed by `gaps`, all in this process."""

from __future__ import annotations

import contextlib
import inspect
import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any

from moto.core.base_backend import BackendDict
from moto.core.config import default_user_config
from moto.core.model_instances import reset_model_data
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from localaws.account import LocalAccount
from localaws.authentication import Authentication
from localaws.conditions import Conditions
from localaws.machines.mischief import Mischief, Peace
from localaws.ports import Addresses
from localaws.recorder import Recorder
from localaws.workers import Workers

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
    "file_systems",
    "dashboards",
    "saved_queries",
)
"""Modules of `localaws.services` in every local AWS; `LocalAws(gaps=...)` adds others. Each has `install(aws)`."""
_ABSENT = object()
_ONE = threading.Lock()


class _QuietHandler(MotoRequestHandler):  # type: ignore[misc]
    protocol_version = "HTTP/1.1"

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Logs nothing: the recorder has every request."""


class _Dispatcher(DomainDispatcherApplication):
    """Looks for a host's service once; moto lists its own folder on disk for each request."""

    def __init__(self, create: Any) -> None:
        super().__init__(create)
        self._find = lru_cache(maxsize=1024)(super().get_backend_for_host)  # whoever calls may name any host

    def get_backend_for_host(self, host: str | None) -> Any:
        return self._find(host)


class LocalAws(LocalAccount):
    """One account in every region, empty at `start()`. A context manager; one at a time in a process, because moto's state is global."""

    def __init__(
        self,
        conditions: Conditions | None = None,
        *,
        gaps: Sequence[str] = (),
        work: Path | None = None,
        echo: Callable[[str, str], None] | None = None,
        mischief: Mischief | None = None,
        root_variables: Sequence[str] = (),
    ) -> None:
        """`gaps` are further modules of `localaws.services`; `work` holds unpacked functions (default: a folder that `stop()` deletes);
        `echo(function, line)` receives every line that a function prints; `mischief` applies faults to single machines;
        programs on a machine find the folder that is its disk in each of `root_variables`, and in LOCAL_AWS_ROOT."""
        super().__init__(conditions or Conditions(), Recorder(self._application()))
        self.mischief: Mischief = mischief or Peace()
        self.root_variables = tuple(root_variables)
        self._temporary = tempfile.TemporaryDirectory(prefix="local-aws-") if work is None else None
        self.work = (work or Path(self._temporary.name if self._temporary else "")).resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        self.work.chmod(0o700)  # disks of machines hold keys, which other users of the computer must not read
        self.workers = Workers(self, self.work, echo)
        self.addresses = Addresses()
        self._gaps = (*GAPS, *gaps)
        self._undo: list[Callable[[], object]] = []
        self._before_stop: list[Callable[[], None]] = []
        self._server: Any = None
        self._thread: threading.Thread | None = None
        self._emit: Callable[[str, str, Mapping[str, Any], Sequence[str], str], None] | None = None
        self.lost_events: list[Mapping[str, Any]] = []
        """Events of which no copy arrived anywhere, oldest first."""

    @staticmethod
    def _application() -> Any:
        return _Dispatcher(create_backend_app)

    # life

    def start(self) -> LocalAws:
        """Resets moto, installs the gaps, listens. Raises RuntimeError while another local AWS runs in this process."""
        if not _ONE.acquire(blocking=False):
            raise RuntimeError("a local AWS runs already in this process, and moto knows only one")
        try:
            self._reset()
            server = make_server("127.0.0.1", 0, self.recorder, threaded=True, request_handler=_QuietHandler)
            self._server = server
            self.recorder.authentication = Authentication(self.recorder.secret_of)
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
            ending.callback(self.addresses.release)
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
            ending.callback(self.cancel_timers)
            for function in self._before_stop:
                ending.callback(function)

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

    def on_emit(self, bus: Callable[[str, str, Mapping[str, Any], Sequence[str], str], None]) -> None:
        """Sets the function that delivers events (`gaps.events`)."""
        self._emit = bus

    def emit(
        self, source: str, detail_type: str, detail: Mapping[str, Any], resources: Sequence[str], region: str
    ) -> None:
        """Emits an AWS service's event: late, sometimes lost, sometimes doubled, as the conditions say."""
        if self._emit and not self.stopping.is_set():
            self._emit(source, detail_type, detail, resources, region)
