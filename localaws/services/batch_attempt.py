"""One attempt of a Batch job: the container of its job definition runs as a process on this computer, in the place of Fargate."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localaws.containers.container import BASIC, Container, slim_python
from localaws.containers.images import Image, NotRunnable, here
from localaws.containers.logs import LogStream
from localaws.containers.unpacked import COPIED, OWN, built
from localaws.services.batch_jobs import GRACE_S, Attempt
from localaws.services.sagemaker_checks import REGISTRY

if TYPE_CHECKING:
    from localaws.server import LocalAws


class NotStarted(Exception):
    """The container never ran; the message is what ECS says about the task."""


class Fargate:
    """Starts the containers of one region's job definitions."""

    def __init__(self, aws: LocalAws, region: str) -> None:
        self._aws, self._region = aws, region

    def new(self) -> Attempt:
        return Attempt(task=f"arn:aws:ecs:{self._region}:{self._aws.account}:task/batch/{uuid.uuid4().hex}")

    def run(self, attempt: Attempt, properties: Mapping[str, Any], variables: Mapping[str, str]) -> None:
        """Returns when the container has ended; `attempt` then says how. `properties` are the definition's with all overrides."""
        log = None
        try:
            container, log = self._started(attempt, properties, variables)
        except Exception as problem:  # whatever the error is, a task that did not start is reported and ends
            known = isinstance(problem, (NotStarted, NotRunnable))
            attempt.status_reason = "Task failed to start"
            attempt.reason = str(problem) if known else f"{type(problem).__name__}: {problem}"
        else:
            if attempt.ending.is_set():
                self.end(attempt, attempt.status_reason)
            attempt.code = container.wait()
        finally:
            if log and not self._aws.stopping.is_set():
                log.flush()
        attempt.stopped_at = time.time()

    def end(self, attempt: Attempt, why: str) -> None:
        """Sends SIGTERM, waits 30 s, sends SIGKILL, as Fargate does for every reason."""
        attempt.status_reason = why
        attempt.ending.set()
        if attempt.container:
            attempt.container.end(self._aws.conditions.grace(GRACE_S))

    def _started(
        self, attempt: Attempt, properties: Mapping[str, Any], variables: Mapping[str, str]
    ) -> tuple[Container, LogStream | None]:
        digest = self._pulled(properties)
        own = built(self._aws.work / "images", digest)
        image = own.image() if own else Image.of(self._aws.work / "images", digest)
        root = self._aws.work / "tasks" / attempt.task.rpartition("/")[2]
        image.lay_out(root)
        log = self._log(attempt, properties)
        if log:
            log.say(OWN if own else COPIED)
        words = [*image.entrypoint, *(properties.get("command") or image.command)]
        if not words:
            raise NotRunnable("neither the image nor the job definition has a command")
        attempt.started_at = time.time()
        if own:
            words = own.command(
                words,
                self._variables(image.variables, properties, variables),
                note=root / "start.json",
                user=properties.get("user", ""),
                read_only=properties.get("readonlyRootFilesystem", False),
            )
            attempt.container = Container(words, {}, root, self._ear(log))
        else:
            attempt.container = Container(
                [here(root, word) for word in words],
                {**self._variables(image.environment(root), properties, variables), **self._python(image, root)},
                root / image.workdir.lstrip("/"),
                self._ear(log),
            )
        return attempt.container, log

    def _python(self, image: Image, root: Path) -> dict[str, str]:
        """The Python and the packages of an image that has none of its own."""
        packages = [image.environment(root).get("PYTHONPATH", ""), str(self._aws.workers.sdk())]
        return {
            "PATH": f"{slim_python(self._aws.work / 'slim')}:{BASIC}",
            "PYTHONPATH": ":".join(filter(None, packages)),
        }

    def _variables(
        self, of_image: Mapping[str, str], properties: Mapping[str, Any], given: Mapping[str, str]
    ) -> dict[str, str]:
        """Contains only what ECS, the image and the job definition set, and the way to the local AWS."""
        role = properties.get("jobRoleArn", "")
        own = {one["name"]: one["value"] for one in properties.get("environment", [])}
        return {
            "HOME": "/",
            "LANG": "C.UTF-8",
            "AWS_REGION": self._region,
            "AWS_DEFAULT_REGION": self._region,
            "AWS_EXECUTION_ENV": "AWS_ECS_FARGATE",
            **of_image,
            **given,
            **own,
            **self._aws.environment(),
            **(self._aws.credentials_for(role).variables() if role else {}),
        }

    def _pulled(self, properties: Mapping[str, Any]) -> str:
        """Returns the digest of the image, pulled with the execution role. Raises NotStarted."""
        found = REGISTRY.fullmatch(properties["image"])
        if not found:
            raise NotStarted(f"CannotPullContainerError: {properties['image']} is in no private registry")
        account, region, repository, tag, digest = found.groups()
        ecr = self._aws.client("ecr", region, role=properties["executionRoleArn"], throttled=False)
        wanted = {"imageDigest": digest} if digest else {"imageTag": tag}
        images = ecr.batch_get_image(registryId=account, repositoryName=repository, imageIds=[wanted])["images"]
        if not images:
            raise NotStarted(f"CannotPullContainerError: {properties['image']}: not found")
        return str(images[0]["imageId"]["imageDigest"])

    def _log(self, attempt: Attempt, properties: Mapping[str, Any]) -> LogStream | None:
        """Opens the log stream with the execution role, as the log driver does."""
        wanted = properties.get("logConfiguration", {})
        if wanted.get("logDriver") != "awslogs":
            return None
        options = wanted.get("options", {})
        group = options.get("awslogs-group", "/aws/batch/job")
        prefix = options.get("awslogs-stream-prefix", "batch")
        attempt.log_stream = f"{prefix}/default/{attempt.task.rpartition('/')[2]}"
        region = options.get("awslogs-region", self._region)
        logs = self._aws.client("logs", region, role=properties["executionRoleArn"], throttled=False)
        try:
            return LogStream(logs, group, attempt.log_stream)
        except logs.exceptions.ResourceNotFoundException as problem:
            raise NotStarted(f"ResourceInitializationError: failed to validate logger args: {problem}") from problem

    def _ear(self, log: LogStream | None) -> Callable[[str], None]:
        def hear(line: str) -> None:
            if log and not self._aws.stopping.is_set():
                log.say(line)

        return hear
