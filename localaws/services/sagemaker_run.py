"""Runs a training job: for each instance a process with the image's training command."""

from __future__ import annotations

import math
import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moto.s3.models import s3_backends

from localaws.containers.container import Container
from localaws.containers.images import Image, NotRunnable, image_of
from localaws.containers.logs import LogStream
from localaws.containers.unpacked import COPIED, OWN, Unpacked, built
from localaws.ports import APART, Port
from localaws.services.sagemaker_bytes import Bytes, DataProblem
from localaws.services.sagemaker_code import Reason, ToolkitError
from localaws.services.sagemaker_container import Host, Started, checkpoints_at, lay_out, started
from localaws.services.sagemaker_jobs import ENDED, Training
from localaws.services.sagemaker_mpi import LATE_S, name_host
from localaws.services.sagemaker_planned import SIGKILL_S

if TYPE_CHECKING:
    from localaws.server import LocalAws

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
LOOK_S = 0.05
MASTER_PORT = 7777
"""The port that AWS's PyTorch containers use; a training tries it first."""
CHECKPOINTS_EVERY_S = 10.0
"""Seconds between two uploads of checkpoints; divided by the rehearsal's speed."""
FAULT = "spot-interrupted"


class Over(Exception):
    """Ends a training: the last secondary status, and the reason of a failure."""

    def __init__(self, secondary: str, reason: str = "") -> None:
        super().__init__(secondary)
        self.secondary, self.reason = secondary, reason


class Run:
    """Runs one training's processes in a thread of its own (`run`), and moves the training through its states."""

    def __init__(
        self,
        aws: LocalAws,
        training: Training,
        region: str,
        image: str,
        *,
        ami: Path,
        addresses: Callable[[], str],
        places: threading.Semaphore,
    ) -> None:
        """`image` is the digest of the image to run; `places` limits how many trainings compute at once on this computer."""
        self.training, self.request, self.region = training, training.request, region
        self.hosts: list[Host] = []
        self.containers: list[Container] = []
        self.interruptions = 0
        self._aws, self._image, self._ami, self._addresses = aws, image, ami, addresses
        self._places, self._computed = places, 0.0
        self._patterns = [
            (one["Name"], re.compile(one["Regex"]))
            for one in self.request["AlgorithmSpecification"].get("MetricDefinitions", [])
        ]
        self.stop, self._gone = threading.Event(), threading.Event()
        # Separate from the local AWS's, so that a training's draws do not depend on when it draws them.
        self._chance = random.Random(f"{aws.conditions.seed} {training.name}")
        self._bytes = Bytes(self._client("s3"), region, self._bucket_region)

    def _bucket_region(self, bucket: str) -> str | None:
        """S3's redirect, which moto does not send. Asked by the training it would need a right that its listings do not need."""
        found = s3_backends[self._aws.account]["aws"].buckets.get(bucket)
        return None if found is None else str(found.region_name)

    @property
    def image(self) -> str:
        """The digest of the image that it runs."""
        return self._image

    @property
    def status(self) -> str:
        return self.training.step(time.time()).status

    @property
    def runs(self) -> bool:
        return self.status not in ENDED

    def vanish(self) -> None:
        """The local AWS stops: ends every process now."""
        self._gone.set()
        for container in self.containers:
            container.kill()

    # its life

    def run(self) -> None:
        try:
            self._live()
            over = Over("Completed")
        except Over as one:
            over = one
        except ToolkitError as problem:
            over = Over("Failed", f"AlgorithmError: {problem}, exit code: 1")
        except (DataProblem, NotRunnable) as problem:
            reason = str(problem)
            over = Over("Failed", reason if reason.startswith("ClientError") else f"ClientError: {reason}")
        except Exception as problem:
            over = Over("Failed", f"InternalServerError: {type(problem).__name__}: {problem}")
        self.training.failure = over.reason
        self._enter(over.secondary, over.reason)
        change, arns = "SageMaker Training Job State Change", [self.training.arn]
        self._aws.emit("aws.sagemaker", change, self._event(), arns, self.region)

    def _live(self) -> None:
        self._wait_for_instances()
        while not self._places.acquire(timeout=LOOK_S):
            self._check_waiting()
        port = Port(MASTER_PORT, apart=APART)
        try:
            while not self._attempt(port.number):
                self.interruptions += 1
                self._enter("Interrupted")
                self._enter("Starting")
                self._wait_for_instances()
            self._upload()
        finally:
            port.release()
            self._places.release()

    def _wait_for_instances(self) -> None:
        """Waits for instances. Raises Over if the training is stopped, or its patience ends, before it has them."""
        until = time.monotonic() + self._aws.conditions.scaled(self._aws.conditions.training_start_s, self._chance)
        while time.monotonic() < until:
            self.stop.wait(LOOK_S)
            self._check_waiting()

    def _check_waiting(self) -> None:
        self._check_gone()
        if self.stop.is_set():
            raise Over("Stopped")
        if self.training.spot and time.time() - self.training.created_at > self._limit("MaxWaitTimeInSeconds"):
            raise Over("MaxWaitTimeExceeded")

    def _attempt(self, port: int) -> bool:
        """Downloads and trains; returns false after an interruption."""
        self._enter("Downloading")
        own = built(self._aws.work / "images", self._image)
        image = own.image() if own else image_of(self._aws.work / "images", self._image)
        self.hosts = self._laid_out(image, own)
        self._download()
        hosts, ami = self.hosts, self._ami
        starts = [started(image, host, hosts, self.request, ami=ami, port=port) for host in hosts]
        self._enter("Training")
        logs = [self._log(host) for host in self.hosts]
        for log in logs:
            log.say(OWN if own else COPIED)
        reasons = [Reason() for _ in self.hosts]
        self.containers = [
            Container(one.command, one.variables, one.folder, self._ear(log, reason, one.processes))
            for one, log, reason in zip(starts, logs, reasons, strict=True)
        ]
        begun = time.monotonic()
        try:
            return self._watch(starts, reasons)
        finally:
            for container in self.containers:
                container.kill()
                container.wait()
            self._computed += time.monotonic() - begun
            for log in logs:
                log.flush()
            self._send_checkpoints()

    def _watch(self, starts: Sequence[Started], reasons: Sequence[Reason]) -> bool:
        """Waits until the containers end, or must end. Raises Over."""
        begun = sent = first_ran = time.monotonic()
        interruption = self._interruption()
        while any(one.code is None for one in self.containers):
            time.sleep(LOOK_S)
            self._check_gone()
            now = time.monotonic()
            if self.containers[0].code is None:
                first_ran = now
            elif now - first_ran > LATE_S and starts[-1].follows:
                raise Over(
                    "Failed", f"AlgorithmError: {self._list_running()}: mpirun has ended, and its daemon there has not"
                )
            if self._has_failed(starts):
                break
            if self.stop.is_set():
                self._end_containers("Stopped")
            if self._computed + now - begun > self._limit("MaxRuntimeInSeconds"):
                self._end_containers("MaxRuntimeExceeded")
            if now - begun > interruption:
                self._sigterm()
                return False
            if now - sent > CHECKPOINTS_EVERY_S / self._aws.conditions.speed:
                self._send_checkpoints()
                sent = time.monotonic()
        self._check_gone()
        self._judge(starts, reasons)
        for container in self.containers:
            container.wait()
        return True

    def _has_failed(self, starts: Sequence[Started]) -> bool:
        """Whether a container has failed that does not wait for the first host's end."""
        over = self.containers[0].code is not None
        return any(one.code and (over or not how.follows) for one, how in zip(self.containers, starts, strict=True))

    def _list_running(self) -> str:
        running = zip(self.hosts, self.containers, strict=True)
        return ", ".join(host.name for host, container in running if container.code is None)

    def _judge(self, starts: Sequence[Started], reasons: Sequence[Reason]) -> None:
        """Raises Over if an instance's command failed."""
        for host, container, how, reason in zip(self.hosts, self.containers, starts, reasons, strict=True):
            code = container.code
            if code:
                container.wait()
                file = host.base / "output/failure"
                if how.by_toolkit and not file.exists():
                    file.write_text(f'ExecuteUserScriptError:\nExitCode {code}\nErrorMessage "{reason}"')
                said = file.read_text(errors="replace")[:900] if file.exists() else ""
                raise Over("Failed", f"AlgorithmError: {said}, exit code: {code}")

    def _end_containers(self, secondary: str) -> None:
        """Ends the containers and uploads the results, then raises Over."""
        self._enter("Stopping")
        self._sigterm()
        self._send_checkpoints()
        self._upload()
        raise Over(secondary)

    def _sigterm(self) -> None:
        for container in self.containers:
            container.terminate()
        until = time.monotonic() + self._aws.conditions.grace(SIGKILL_S)
        for container in self.containers:
            if container.wait(max(0.0, until - time.monotonic())) is None:
                container.kill()
                container.wait()

    def _interruption(self) -> float:
        """Returns the seconds from now until the spot instances are taken away."""
        fault = self._aws.conditions.fault(FAULT, self.training.tags)
        if not self.training.spot or fault is None:
            return math.inf
        over = self.interruptions >= fault.number("times")
        return math.inf if over else fault.seconds("after") / self._aws.conditions.speed

    # bytes

    def _laid_out(self, image: Image, own: Unpacked | None) -> list[Host]:
        root = self._aws.work / "trainings" / self.region / self.training.name
        names = [f"algo-{number + 1}" for number in range(self.training.instances)]
        folders = [root / str(self.interruptions) / name for name in names]
        hosts = [
            Host(name=name, address=self._addresses(), root=folder, own=own)
            for name, folder in zip(names, folders, strict=True)
        ]
        for host in hosts:
            (host.root / "root").mkdir(parents=True, exist_ok=True)
            image.lay_out(host.root)
            lay_out(host, hosts, self.request)
        return hosts

    def _download(self) -> None:
        for place, host in enumerate(self.hosts):
            for channel in self.request.get("InputDataConfig", []):
                into = host.base / "input/data" / channel["ChannelName"]
                into.mkdir(exist_ok=True)
                self._bytes.channel(channel, into, place, len(self.hosts))
            if uri := self._checkpoints():
                self._bytes.fetch_checkpoints(uri, self._local_checkpoints(host))

    def _send_checkpoints(self) -> None:
        if uri := self._checkpoints():
            for host in self.hosts:
                self._bytes.send_checkpoints(uri, self._local_checkpoints(host))

    def _upload(self) -> None:
        """Uploads the model and all other output, of every instance together."""
        self._enter("Uploading")
        place = self.training.output
        if self._bytes.send_archive(f"{place}/model.tar.gz", [host.base / "model" for host in self.hosts]):
            self.training.artifact = f"{place}/model.tar.gz"
        self._bytes.send_archive(f"{place}/output.tar.gz", [host.base / "output/data" for host in self.hosts])

    def _checkpoints(self) -> str:
        return str(self.request.get("CheckpointConfig", {}).get("S3Uri", ""))

    def _local_checkpoints(self, host: Host) -> Path:
        place: Path = host.root / checkpoints_at(self.request).lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        return place

    # words

    def _enter(self, secondary: str, message: str = "") -> None:
        self.training.enter(secondary, time.time(), message)

    def _log(self, host: Host) -> LogStream:
        stream = f"{self.training.name}/{host.name}-{int(time.time() * 1000)}"
        return LogStream(self._client("logs"), LOG_GROUP, stream, new_group=True)

    def _ear(self, log: LogStream, reason: Reason, processes: int) -> Callable[[str], None]:
        def hear(line: str) -> None:
            reason.hear(line)
            line = name_host(line, processes) if processes else line
            for name, pattern in self._patterns:
                if found := pattern.search(line):
                    self._metric(name, found[1] if pattern.groups else found[0])
            if not self._aws.stopping.is_set():
                log.say(line)

        return hear

    def _metric(self, name: str, text: str) -> None:
        try:
            self.training.metrics[name] = (float(text), time.time())
        except ValueError:  # the expression may match something that is not a number
            return

    def _event(self) -> dict[str, Any]:
        found = self.training.summary(time.time())
        return {
            **{key: int(value.timestamp() * 1000) if key.endswith("Time") else value for key, value in found.items()},
            "Tags": self.training.tags,
        }

    def _limit(self, name: str) -> float:
        """Returns a limit of the stopping condition, in seconds of the rehearsal."""
        return self.training.limit(name) / self._aws.conditions.speed

    def _client(self, service: str) -> Any:
        return self._aws.client(service, self.region, role=self.request["RoleArn"], throttled=False)

    def _check_gone(self) -> None:
        if self._gone.is_set():
            raise Over("Failed", "InternalServerError: the local AWS has stopped")
