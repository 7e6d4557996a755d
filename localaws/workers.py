"""Runs deployed functions as warm processes: unpacks zips and layers, uses AWS's runtime client, and starts a few workers per function."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import io
import json
import os
import sys
import threading
import time
import uuid
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localaws import processors, shelf
from localaws.account import LocalAccount
from localaws.probe import imported_from
from localaws.runtime_api import Invocation, Outcome, Worker

AT_ONCE = 4
"""Workers per function; AWS would start more, but two cores would not carry them."""
RETRY_AFTER_S = (60.0, 120.0)
"""Pauses between attempts of an asynchronous invocation, as in Lambda; divided by the rehearsal's speed."""
LAYERS = Path(__file__).parent.parent / "build" / "layers"
"""Unpacked layers, by their contents."""
RUNTIME = ("awslambdaric", "simplejson", "snapshot-restore-py")
COMPILED = ("boto3", "pydantic_core")
"""What both the layer of all functions and AWS's runtime have."""
NUMPY = "numpy"
RUNTIME_SDK = (*RUNTIME, "boto3", "botocore", "s3transfer", "jmespath", "python-dateutil", "six", "urllib3")
"""Packages of AWS's runtime, including the SDK that functions without a layer import."""


class Stopped(RuntimeError):
    """A function was invoked after the local AWS had stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A deployed function; another value means another set of workers."""

    name: str
    arn: str
    region: str
    role: str
    handler: str
    runtime: str
    timeout_s: float
    memory_mb: int
    variables: tuple[tuple[str, str], ...]
    layers: tuple[str, ...]
    log_group: str
    digest: str

    @classmethod
    def of(cls, deployed: Any) -> Function:
        """Reads moto's LambdaFunction."""
        return cls(
            name=deployed.function_name,
            arn=deployed.function_arn,
            region=deployed.region,
            role=deployed.role,
            handler=deployed.handler,
            runtime=deployed.run_time or "python3",
            timeout_s=float(deployed.timeout),
            memory_mb=int(deployed.memory_size),
            variables=tuple(sorted((name, str(value)) for name, value in deployed.environment_vars.items())),
            layers=tuple(layer["Arn"] for layer in deployed.layers),
            log_group=deployed.logs_group_name,
            digest=hashlib.sha256(deployed.code_bytes).hexdigest()[:12],
        )


@dataclass(frozen=True, slots=True)
class Line:
    """A line that a function printed."""

    at: float
    function: str
    text: str


class _Pool:
    """The workers of one function."""

    def __init__(self, start: Callable[[], Worker]) -> None:
        self._start = start
        self._free = threading.Condition()
        self._idle: list[Worker] = []
        self.workers: set[Worker] = set()
        self._closed = False

    def take(self) -> Worker:
        """Returns an idle worker, a new one, or the next one that becomes idle."""
        with self._free:
            while not self._closed:
                while self._idle:
                    if (worker := self._idle.pop()).alive:
                        return worker
                    self.workers.discard(worker)
                if len(self.workers) < AT_ONCE:
                    worker = self._start()
                    self.workers.add(worker)
                    return worker
                self._free.wait()
        raise RuntimeError("the local AWS has stopped, or the function was replaced")

    def give(self, worker: Worker, *, alive: bool) -> None:
        with self._free:
            if alive and not self._closed:
                self._idle.append(worker)
            else:
                self.workers.discard(worker)
            self._free.notify()

    def close(self) -> None:
        with self._free:
            self._closed = True
            workers, self.workers = self.workers, set()
            self._free.notify_all()
        for worker in workers:
            worker.stop()


class Workers:
    """All functions of a local AWS."""

    def __init__(self, aws: LocalAccount, work: Path, echo: Callable[[str, str], None] | None) -> None:
        self._aws, self._work, self._echo = aws, work, echo
        self._layers = contextlib.ExitStack()
        self._processors = processors.Processors()
        self._probed: dict[tuple[str, ...], dict[str, str]] = {}
        self._pools: dict[Function, _Pool] = {}
        self._lock = threading.Lock()
        self._paths: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.lines: list[Line] = []
        self.listeners: list[Callable[[Function, str], None]] = []
        """Functions that receive every message that a function prints."""
        self.invocations: list[tuple[float, str, bool]] = []
        """(seconds since the epoch, function, failed), in the order in which invocations ended."""

    def invoke(self, deployed: Any, payload: bytes) -> Outcome:
        """Runs moto's LambdaFunction once and waits for it."""
        function = Function.of(deployed)
        if not function.runtime.startswith("python"):
            message = f"{function.name}: the rehearsal runs Python functions, not {function.runtime}"
            self._log(function, message)
            return Outcome.error("Unsupported", message)
        pool, request = self._pool(function, deployed), str(uuid.uuid4())
        worker = pool.take()
        began = time.monotonic()
        outcome = Outcome(payload=b"", failed=True, alive=False)
        try:
            invocation = Invocation(request=request, arn=function.arn, payload=payload, timeout_s=function.timeout_s)
            outcome = worker.invoke(invocation)
        finally:
            pool.give(worker, alive=outcome.alive)
        spent = (time.monotonic() - began) * 1000
        self._log(
            function, f"REPORT RequestId: {request}\tDuration: {spent:.2f} ms\tMemory Size: {function.memory_mb} MB"
        )
        self.invocations.append((time.time(), function.name, outcome.failed))
        return outcome

    def invoke_later(self, deployed: Any, payload: bytes, *, attempt: int = 0) -> None:
        """Invokes asynchronously: at once, and after a failure as often again as the function's configuration says (twice by
        default); then sends the failure to the configured destination."""

        def run() -> None:
            outcome = self.invoke(deployed, payload)
            if not outcome.failed:
                return
            told = deployed.event_invoke_config[-1].config if deployed.event_invoke_config else {}
            if attempt < min(told.get("MaximumRetryAttempts", len(RETRY_AFTER_S)), len(RETRY_AFTER_S)):
                delay = RETRY_AFTER_S[attempt] / self._aws.conditions.speed
                self._aws.later(delay, lambda: self.invoke_later(deployed, payload, attempt=attempt + 1))
            elif place := told.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination"):
                self._aws.send_message(
                    deployed.role, place, json.dumps(_letter(deployed, payload, outcome, attempt + 1))
                )

        self._aws.later(0, run)

    def warm(self) -> None:
        """Starts one worker of every deployed function, as if it had been in use; returns at once."""
        from moto.awslambda_simple.models import lambda_simple_backends

        for backend in list(lambda_simple_backends[self._aws.account].values()):
            for deployed in list(backend._lambdas.latest()):
                pool = self._pool(Function.of(deployed), deployed)
                if not pool.workers:
                    pool.give(pool.take(), alive=True)

    def imported_layer(self) -> tuple[bool, str]:
        """Returns whether every function with a layer imports boto3 and pydantic_core from that layer, and from where it does."""
        with self._lock:
            layers = [paths for names, paths in self._paths.items() if names]
        if not layers:
            return False, "no function with a layer has run"
        found = {name: where for paths in layers for name, where in self._probe(paths).items()}
        folder = str(LAYERS)
        detail = ", ".join(
            f"{name} from {where.replace(str(LAYERS.parent), '...')}" for name, where in sorted(found.items())
        )
        return all(where.startswith(folder) for where in found.values()), detail

    def logs(self) -> dict[str, list[str]]:
        """Returns the lines that each function's workers printed, oldest first."""
        found: dict[str, list[str]] = {}
        for line in list(self.lines):
            found.setdefault(line.function, []).append(line.text)
        return found

    def stop(self) -> None:
        """Ends every worker."""
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()
        self._processors.stop()
        self._layers.close()

    # unpacking

    def _pool(self, function: Function, deployed: Any) -> _Pool:
        with self._lock:
            if self._aws.stopping.is_set():
                raise Stopped(f"{function.name} was invoked after the local AWS had stopped")
            if function not in self._pools:
                self._retire(function.arn)
                self._pools[function] = _Pool(self._starter(function, deployed))
            return self._pools[function]

    def _retire(self, arn: str) -> None:
        """Ends the workers of the function's earlier version."""
        for old in [one for one in self._pools if one.arn == arn]:
            threading.Thread(target=self._pools.pop(old).close, daemon=True).start()

    def _starter(self, function: Function, deployed: Any) -> Callable[[], Worker]:
        folder = _unpack(self._work / "functions" / f"{function.name}-{function.digest}", deployed.code_bytes)
        paths = (str(folder), *self._layer_paths(function))
        variables = self._variables(function, folder, paths)
        stream = f"{time.strftime('%Y/%m/%d')}/[$LATEST]"

        def start() -> Worker:
            log_stream = stream + uuid.uuid4().hex
            self._open_stream(function, log_stream)
            command = [sys.executable, "-S", "-m", "awslambdaric", function.handler]
            named = {**variables, "AWS_LAMBDA_LOG_STREAM_NAME": log_stream}
            share = processors.share(function.memory_mb) if self._aws.conditions.processor_shares else 1.0
            worker = Worker(command, named, folder, lambda line: self._log(function, line, log_stream), share=share)
            with contextlib.suppress(OSError):  # it ended at once, which its first invocation will report
                self._processors.hold(worker.pid, share * self._aws.conditions.speed)
            return worker

        return start

    def _layer_paths(self, function: Function) -> tuple[str, ...]:
        """Returns layers, then the runtime; the environment's own packages replace native wheels that this computer cannot load."""
        if function.layers not in self._paths:
            from moto.awslambda_simple.models import lambda_simple_backends

            backend = lambda_simple_backends[self._aws.account][function.region]
            folders = []
            for arn in function.layers:
                layer = backend.layers_versions_by_arn(arn)
                folders.append(str(self._layer(layer.code_bytes) / "python"))
            paths = (*folders, str(self._runtime(RUNTIME if folders else RUNTIME_SDK)))
            found = self._probe(paths) if folders else {}
            if any(where.startswith("!") for where in found.values()):
                paths = (str(self._runtime(("pydantic", "pydantic-core", *RUNTIME_SDK))), *paths)
            if any((Path(folder) / NUMPY).exists() for folder in folders) and not self._loads(NUMPY, paths):
                paths = (str(self._runtime((NUMPY,))), *paths)
            self._paths[function.layers] = paths
        return self._paths[function.layers]

    def _layer(self, archive: bytes) -> Path:
        """Unpacks a layer once for many runs, and keeps its byte code: on Lambda a layer exists when a function starts."""

        def unpack(folder: Path) -> None:
            zipfile.ZipFile(io.BytesIO(archive)).extractall(folder)

        digest = f"{hashlib.sha256(archive).hexdigest()[:12]}-{sys.implementation.cache_tag}"
        return self._layers.enter_context(shelf.kept(LAYERS, digest, unpack))[0]

    def sdk(self) -> Path:
        """Returns a folder with AWS's SDK and nothing else, like a slim image after `pip install boto3`."""
        with self._lock:
            return self._runtime(RUNTIME_SDK[len(RUNTIME) :])

    def _runtime(self, distributions: tuple[str, ...]) -> Path:
        """Makes a folder of links to these packages of our own environment, and to nothing else in it."""
        folder = self._work / "runtime" / hashlib.sha256("".join(distributions).encode()).hexdigest()[:8]
        if not folder.exists():
            folder.mkdir(parents=True)
            for distribution in distributions:
                files = importlib.metadata.files(distribution) or []
                for name in {file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__")}:
                    link = folder / name
                    if not link.exists():
                        link.symlink_to(
                            Path(str(importlib.metadata.distribution(distribution).locate_file(name))).resolve()
                        )
        return folder

    def _probe(self, paths: tuple[str, ...]) -> dict[str, str]:
        if paths not in self._probed:
            self._probed[paths] = imported_from(paths, self._work, COMPILED)
        return self._probed[paths]

    def _loads(self, library: str, paths: tuple[str, ...]) -> bool:
        """Whether this Python can import the library from the layer, which has machine code of the runtime's own Python."""
        return not imported_from(paths, self._work, [library])[library].startswith("!")

    def _variables(self, function: Function, folder: Path, paths: tuple[str, ...]) -> Mapping[str, str]:
        return {
            **dict(function.variables),
            **self._aws.credentials_for(function.role, session=function.name).variables(),
            **self._aws.environment(),
            **self._aws.outside,
            "AWS_REGION": function.region,
            "AWS_DEFAULT_REGION": function.region,
            "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.runtime}",
            "AWS_LAMBDA_FUNCTION_NAME": function.name,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            "AWS_LAMBDA_LOG_GROUP_NAME": function.log_group,
            "LAMBDA_TASK_ROOT": str(folder),
            "_HANDLER": function.handler,
            "PYTHONPATH": ":".join(paths),
            "PYTHONUNBUFFERED": "1",
            "PATH": os.environ.get("PATH", ""),
            "LANG": "en_US.UTF-8",
            "TZ": ":UTC",
            # Excludes the SDK configuration of the person who rehearses.
            "HOME": str(self._work),
        }

    # logs

    def _open_stream(self, function: Function, stream: str) -> None:
        from moto.logs.models import logs_backends

        backend = logs_backends[self._aws.account][function.region]
        backend.ensure_log_group(function.log_group)
        backend.create_log_stream(function.log_group, stream)

    def _log(self, function: Function, text: str, stream: str | None = None) -> None:
        # AWS's runtime client separates the lines of a message by carriage returns.
        now, text = time.time(), text.replace("\r", "\n")
        self.lines.append(Line(now, function.name, text))
        for listener in self.listeners:
            listener(function, text)
        if self._echo:
            self._echo(function.name, text)
        if stream and not self._aws.stopping.is_set():
            from moto.logs.exceptions import ResourceNotFoundException
            from moto.logs.models import logs_backends

            backend = logs_backends[self._aws.account][function.region]
            with contextlib.suppress(ResourceNotFoundException):  # a destroyed stack deleted its log group
                backend.put_log_events(function.log_group, stream, [{"timestamp": int(now * 1000), "message": text}])


def _unpack(folder: Path, archive: bytes) -> Path:
    if not folder.exists():
        partial = folder.with_name(f"{folder.name}.{uuid.uuid4().hex}")
        partial.mkdir(parents=True)
        zipfile.ZipFile(io.BytesIO(archive)).extractall(partial)
        partial.rename(folder)
    return folder


def _letter(deployed: Any, payload: bytes, outcome: Outcome, tries: int) -> dict[str, Any]:
    """Returns the message for a destination on failure."""
    return {
        "version": "1.0",
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
        "requestContext": {
            "requestId": str(uuid.uuid4()),
            "functionArn": f"{deployed.function_arn}:$LATEST",
            "condition": "RetriesExhausted",
            "approximateInvokeCount": tries,
        },
        "requestPayload": json.loads(payload),
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
        "responsePayload": json.loads(outcome.payload or b"null"),
    }
