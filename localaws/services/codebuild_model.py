"""CodeBuild of one region, as far as builds go: one per token, found by id, stopped, reported with the phase that failed.

Whoever creates one supplies a clock, the projects and, by a subclass, a way to run started builds.
"""

from __future__ import annotations

import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from localaws.model import Clock, Refused, moment

BUILDS = ("StartBuild", "BatchGetBuilds", "StopBuild")


@dataclass(eq=False, kw_only=True)
class Build:
    """What CodeBuild says about a build."""

    id: str
    arn: str
    project: Mapping[str, Any]
    overrides: Mapping[str, str]
    """Variables of this build, which override the project's."""
    started: float
    machine: Mapping[str, str] = field(default_factory=dict)
    """The type and the image of the machine, where they are others than the project's."""
    status: str = "IN_PROGRESS"
    phase: str = "SUBMITTED"
    failed_in: str = ""
    """The phase that failed ..."""
    why: str = ""
    """... and CodeBuild's message about it."""
    ended: float = 0.0

    @property
    def runs(self) -> bool:
        return self.status == "IN_PROGRESS"

    @property
    def group(self) -> str:
        return str(self.project.get("logsConfig", {}).get("cloudWatchLogs", {}).get("groupName", ""))

    @property
    def stream(self) -> str:
        return self.id.partition(":")[2]

    def described(self) -> dict[str, Any]:
        found = {
            "id": self.id,
            "arn": self.arn,
            "projectName": self.project["name"],
            "environment": {**self.project.get("environment", {}), **self.machine},
            "buildStatus": self.status,
            "currentPhase": self.phase if self.runs else "COMPLETED",
            "buildComplete": not self.runs,
            "startTime": moment(self.started),
            "logs": {"groupName": self.group, "streamName": self.stream},
            "phases": [],
        }
        if self.failed_in and not self.runs:
            contexts = [{"statusCode": "COMMAND_EXECUTION_ERROR", "message": self.why}]
            found["phases"] = [{"phaseType": self.failed_in, "phaseStatus": self.status, "contexts": contexts}]
        return {**found, **({"endTime": moment(self.ended)} if self.ended else {})}


class CodeBuild(ABC):
    """Builds of one region; `projects` holds projects by name."""

    def __init__(
        self, region: str, clock: Clock, account: str, projects: Callable[[str], Mapping[str, Any] | None]
    ) -> None:
        self.region, self.clock, self.account, self._projects = region, clock, account, projects
        self.builds: dict[str, Build] = {}
        self._tokens: dict[tuple[str, str], Build] = {}
        self._turn = threading.Lock()

    # for whoever gives it a way to run work

    @abstractmethod
    def begin(self, build: Build) -> None:
        """Starts work: the build is IN_PROGRESS from now on."""

    @abstractmethod
    def end(self, build: Build) -> None:
        """Ends work: somebody stopped the build, which may have ended."""

    # what AWS's API does

    def answer(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answers a call. Raises Refused."""
        if operation == "StartBuild":
            return self._start(params)
        if operation == "BatchGetBuilds":
            found = [self.builds[one].described() for one in params["ids"] if one in self.builds]
            return {"builds": found, "buildsNotFound": [one for one in params["ids"] if one not in self.builds]}
        if operation != "StopBuild":
            raise Refused("InvalidInputException", f"The local CodeBuild has no {operation}")
        build = self.builds.get(params["id"])
        if build is None:
            raise Refused("ResourceNotFoundException", f"Build cannot be found: {params['id']}")
        self.end(build)
        return {"build": build.described()}

    def add(
        self,
        project: Mapping[str, Any],
        number: str,
        overrides: Mapping[str, str],
        machine: Mapping[str, str] | None = None,
    ) -> Build:
        identity = f"{project['name']}:{number}"
        arn = f"arn:aws:codebuild:{self.region}:{self.account}:build/{identity}"
        made = Build(
            id=identity, arn=arn, project=project, overrides=overrides, started=self.clock.time(), machine=machine or {}
        )
        self.builds[identity] = made
        return made

    def _start(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Starts a build; the same token means the same build."""
        name, token = params["projectName"], params.get("idempotencyToken") or str(uuid.uuid4())
        project = self._projects(name)
        if project is None:
            raise Refused("ResourceNotFoundException", f"Project cannot be found: {name}")
        with self._turn:
            build = self._tokens.get((name, token))
            if build is None:
                overrides = {one["name"]: one["value"] for one in params.get("environmentVariablesOverride") or []}
                build = self._tokens[name, token] = self.add(project, str(uuid.uuid4()), overrides, _machine(params))
                self.begin(build)
        return {"build": build.described()}


def _machine(params: Mapping[str, Any]) -> dict[str, str]:
    """Returns the overrides of a build's machine. Raises Refused where its type and its image are for different processors."""
    given = {"type": params.get("environmentTypeOverride"), "image": params.get("imageOverride")}
    machine = {name: str(value) for name, value in given.items() if value}
    if len(machine) == 2 and machine["type"].startswith("ARM") != ("aarch64" in machine["image"]):
        raise Refused(
            "InvalidInputException",
            f"The image {machine['image']} does not run in an environment of type {machine['type']}",
        )
    return machine
