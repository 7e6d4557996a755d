"""One training job: the states of SageMaker, and for each instance a process that runs the image's training command."""

from __future__ import annotations

import math
import random
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localaws.containers.container import Container
from localaws.containers.images import Image, NotRunnable
from localaws.containers.logs import LogStream
from localaws.ports import Port
from localaws.services.sagemaker_bytes import Bytes, DataProblem
from localaws.services.sagemaker_container import CHECKPOINTS, Host, Started, lay_out, started

if TYPE_CHECKING:
    from localaws.server import LocalAws

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
LOOK_S = 0.05
MASTER_PORT = 7777
"""The one that AWS's PyTorch containers use, and the first that a training asks for here."""
GRACE_S = 120.0
"""From SIGTERM to SIGKILL, on AWS."""
CHECKPOINTS_EVERY_S = 10.0
"""Between two uploads of checkpoints; the rehearsal divides it."""
SPOT_SHARE = 0.3
"""Of the on-demand price, for managed spot: what a spot instance costs varies by the hour."""
TOLD = 5
"""Last lines of a program that AWS's toolkit puts into the failure file."""
FAULT = "spot-interrupted"
SAYS = {
    "Starting": "Preparing the instances for training",
    "Downloading": "Downloading input data",
    "Training": "Training image download completed. Training in progress.",
    "Interrupted": "Training job interrupted by a loss of spot capacity",
    "Uploading": "Uploading generated training model",
    "Stopping": "Stopping the training job",
    "Completed": "Training job completed",
    "Stopped": "Training job stopped",
    "Failed": "Training job failed",
    "MaxRuntimeExceeded": "Training job runtime exceeded MaxRuntimeInSeconds provided",
    "MaxWaitTimeExceeded": "Training job wait time exceeded MaxWaitTimeInSeconds provided",
}


class Over(Exception):
    """The end of a training: the last status, the last secondary status, the reason of a failure."""

    def __init__(self, status: str, secondary: str = "", reason: str = "") -> None:
        super().__init__(status)
        self.status, self.secondary, self.reason = status, secondary or status, reason


class Training:
    """Lives in a thread of its own (`run`); `described` is what DescribeTrainingJob says."""

    def __init__(
        self,
        aws: LocalAws,
        request: Mapping[str, Any],
        region: str,
        image: str,
        *,
        ami: Path,
        addresses: Callable[[], str],
        places: threading.Semaphore,
    ) -> None:
        """`image` is the digest of what is run; `places` bounds how many trainings compute at once on this computer."""
        self.request, self.region, self.name = request, region, str(request["TrainingJobName"])
        self.arn = f"arn:aws:sagemaker:{region}:{aws.account}:training-job/{self.name}"
        self.tags = {one["Key"]: one["Value"] for one in request.get("Tags", [])}
        self.status, self.secondary, self.reason = "InProgress", "Starting", ""
        self.created = self.modified = time.time()
        self.hosts: list[Host] = []
        self.containers: list[Container] = []
        self.interruptions = 0
        self._aws, self._image, self._ami, self._addresses = aws, image, ami, addresses
        self._places = places
        self._began = self._ended = self._computed = 0.0
        self._transitions: list[dict[str, Any]] = []
        self._metrics: dict[str, tuple[float, float]] = {}
        self._patterns = [
            (one["Name"], re.compile(one["Regex"]))
            for one in request["AlgorithmSpecification"].get("MetricDefinitions", [])
        ]
        self._stop, self._gone = threading.Event(), threading.Event()
        self._artifact = ""
        self._turn = threading.RLock()
        # Not the local AWS's own: what one training draws does not depend on when it draws it.
        self._chance = random.Random(f"{aws.conditions.seed} {self.name}")
        self._bytes = Bytes(self._client("s3"), region)
        self._enter("Starting")

    # what AWS's API does and says

    @property
    def runs(self) -> bool:
        return self.status in ("InProgress", "Stopping")

    @property
    def instances(self) -> int:
        return int(self.request["ResourceConfig"]["InstanceCount"])

    @property
    def spot(self) -> bool:
        return bool(self.request.get("EnableManagedSpotTraining"))

    def stop(self) -> None:
        """As StopTrainingJob: SIGTERM, 120 s, what was made is uploaded."""
        with self._turn:
            if self.status == "InProgress":
                self.status = "Stopping"
                self._enter("Stopping")
        self._stop.set()

    def vanish(self) -> None:
        """The local AWS stops: every process ends now."""
        self._gone.set()
        for container in self.containers:
            container.kill()

    def described(self) -> dict[str, Any]:
        with self._turn:
            kept = {key: value for key, value in self.request.items() if key != "Tags"}
            found = {
                **kept,
                "TrainingJobArn": self.arn,
                "TrainingJobStatus": self.status,
                "SecondaryStatus": self.secondary,
                "SecondaryStatusTransitions": [dict(one) for one in self._transitions],
                "CreationTime": self.created,
                "LastModifiedTime": self.modified,
                "ModelArtifacts": {"S3ModelArtifacts": self._artifact},
                "FinalMetricDataList": [
                    {"MetricName": name, "Value": value, "Timestamp": at} for name, (value, at) in self._metrics.items()
                ],
            }
            if self.reason:
                found["FailureReason"] = self.reason
            if self._began:
                found["TrainingStartTime"] = self._began
            if self._ended:
                found["TrainingEndTime"] = self._ended
            if self._ended and self._began:
                spent = math.ceil(self._ended - self._began)
                found["TrainingTimeInSeconds"] = spent
                found["BillableTimeInSeconds"] = math.ceil(spent * SPOT_SHARE) if self.spot else spent
            return found

    # its life

    def run(self) -> None:
        try:
            self._live()
            over = Over("Completed")
        except Over as one:
            over = one
        except (DataProblem, NotRunnable) as problem:
            reason = str(problem)
            over = Over("Failed", reason=reason if reason.startswith("ClientError") else f"ClientError: {reason}")
        except Exception as problem:
            over = Over("Failed", reason=f"InternalServerError: {type(problem).__name__}: {problem}")
        with self._turn:
            self._ended, self.status, self.reason = time.time(), over.status, over.reason
            self._enter(over.secondary)
        self._aws.emit("aws.sagemaker", "SageMaker Training Job State Change", self._event(), [self.arn], self.region)

    def _live(self) -> None:
        self._wait_for_instances()
        while not self._places.acquire(timeout=LOOK_S):
            self._check_waiting()
        port = Port(MASTER_PORT)
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
        """Raises Over when the training is stopped, or its patience is over, before it has any."""
        until = time.monotonic() + self._aws.conditions.scaled(self._aws.conditions.training_start_s, self._chance)
        while time.monotonic() < until:
            self._stop.wait(LOOK_S)
            self._check_waiting()

    def _check_waiting(self) -> None:
        self._check_gone()
        if self._stop.is_set():
            raise Over("Stopped")
        if self.spot and time.time() - self.created > self._limit("MaxWaitTimeInSeconds"):
            raise Over("Stopped", "MaxWaitTimeExceeded")

    def _attempt(self, port: int) -> bool:
        """Downloads and trains; False after an interruption."""
        self._enter("Downloading")
        self._began = self._began or time.time()
        image = Image.of(self._aws.work / "images", self._image)
        self.hosts = self._laid_out(image)
        self._download()
        hosts, ami = self.hosts, self._ami
        starts = [started(image, host, hosts, self.request, ami=ami, port=port) for host in hosts]
        self._enter("Training")
        logs = [self._log(host) for host in self.hosts]
        last = [deque[str](maxlen=TOLD) for _ in self.hosts]
        self.containers = [
            Container(one.command, one.variables, one.folder, self._ear(log, lines))
            for one, log, lines in zip(starts, logs, last, strict=True)
        ]
        begun = time.monotonic()
        try:
            return self._watch(starts, last)
        finally:
            for container in self.containers:
                container.kill()
                container.wait()
            self._computed += time.monotonic() - begun
            for log in logs:
                log.flush()
            self._send_checkpoints()

    def _watch(self, starts: Sequence[Started], last: Sequence[deque[str]]) -> bool:
        """Until the containers are over, or have to be. Raises Over."""
        begun = sent = time.monotonic()
        interruption = self._interruption()
        while any(one.code is None for one in self.containers):
            time.sleep(LOOK_S)
            self._check_gone()
            now = time.monotonic()
            if any(one.code for one in self.containers):
                break
            if self._stop.is_set():
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
        self._judge(starts, last)
        for container in self.containers:
            container.wait()
        return True

    def _judge(self, starts: Sequence[Started], last: Sequence[deque[str]]) -> None:
        """Raises Over where an instance's command failed."""
        for host, container, how, lines in zip(self.hosts, self.containers, starts, last, strict=True):
            code = container.code
            if code:
                container.wait()
                file = host.base / "output/failure"
                if how.by_toolkit and not file.exists():
                    file.write_text(f'ExecuteUserScriptError:\nExitCode {code}\nErrorMessage "{chr(10).join(lines)}"')
                said = file.read_text(errors="replace")[:900] if file.exists() else ""
                raise Over("Failed", reason=f"AlgorithmError: {said}, exit code: {code}")

    def _end_containers(self, secondary: str) -> None:
        """Raises Over, what was made having been uploaded."""
        self._sigterm()
        self._send_checkpoints()
        self._upload()
        raise Over("Stopped", secondary)

    def _sigterm(self) -> None:
        for container in self.containers:
            container.terminate()
        until = time.monotonic() + GRACE_S / self._aws.conditions.speed
        for container in self.containers:
            if container.wait(max(0.0, until - time.monotonic())) is None:
                container.kill()
                container.wait()

    def _interruption(self) -> float:
        """Seconds from now until the spot instances are taken away."""
        fault = self._aws.conditions.fault(FAULT, self.tags)
        if not self.spot or fault is None:
            return math.inf
        over = self.interruptions >= fault.number("times")
        return math.inf if over else fault.seconds("after") / self._aws.conditions.speed

    # bytes

    def _laid_out(self, image: Image) -> list[Host]:
        root = self._aws.work / "trainings" / self.region / self.name
        names = [f"algo-{number + 1}" for number in range(self.instances)]
        folders = [root / str(self.interruptions) / name for name in names]
        hosts = [
            Host(name=name, address=self._addresses(), root=folder) for name, folder in zip(names, folders, strict=True)
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
        """The model and whatever else was put out, of every instance together."""
        if self.status == "InProgress":
            self._enter("Uploading")
        place = f"{self.request['OutputDataConfig']['S3OutputPath'].rstrip('/')}/{self.name}/output"
        if self._bytes.send_archive(f"{place}/model.tar.gz", [host.base / "model" for host in self.hosts]):
            self._artifact = f"{place}/model.tar.gz"
        self._bytes.send_archive(f"{place}/output.tar.gz", [host.base / "output/data" for host in self.hosts])

    def _checkpoints(self) -> str:
        return str(self.request.get("CheckpointConfig", {}).get("S3Uri", ""))

    def _local_checkpoints(self, host: Host) -> Path:
        local = str(self.request.get("CheckpointConfig", {}).get("LocalPath", CHECKPOINTS))
        place: Path = host.root / local.lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        return place

    # words

    def _enter(self, secondary: str) -> None:
        with self._turn:
            now = time.time()
            if self._transitions:
                self._transitions[-1]["EndTime"] = now
            self.secondary, self.modified = secondary, now
            message = {"StatusMessage": self.reason or SAYS[secondary]}
            self._transitions.append({"Status": secondary, "StartTime": now, **message})
            if secondary in SAYS and not self.runs:
                self._transitions[-1]["EndTime"] = now

    def _log(self, host: Host) -> LogStream:
        stream = f"{self.name}/{host.name}-{int(time.time() * 1000)}"
        return LogStream(self._client("logs"), LOG_GROUP, stream, new_group=True)

    def _ear(self, log: LogStream, last: deque[str]) -> Callable[[str], None]:
        def hear(line: str) -> None:
            last.append(line)
            for name, pattern in self._patterns:
                if found := pattern.search(line):
                    self._metric(name, found[1] if pattern.groups else found[0])
            if not self._aws.stopping.is_set():
                log.say(line)

        return hear

    def _metric(self, name: str, text: str) -> None:
        try:
            value = float(text)
        except ValueError:  # what the expression finds need not be a number
            return
        with self._turn:
            self._metrics[name] = (value, time.time())

    def _event(self) -> dict[str, Any]:
        found = self.described()
        times = {key: int(value * 1000) for key, value in found.items() if key.endswith("Time")}
        return {
            key: found[key] for key in ("TrainingJobName", "TrainingJobArn", "TrainingJobStatus", "SecondaryStatus")
        } | {
            **times,
            "Tags": self.tags,
        }

    def _limit(self, name: str) -> float:
        """Of the stopping condition, in seconds of the rehearsal."""
        return float(self.request["StoppingCondition"].get(name, 86400)) / self._aws.conditions.speed

    def _client(self, service: str) -> Any:
        return self._aws.client(service, self.region, role=self.request["RoleArn"], throttled=False)

    def _check_gone(self) -> None:
        if self._gone.is_set():
            raise Over("Failed", reason="InternalServerError: the local AWS has stopped")
