"""CodeBuild over HTTP: a build runs its project's own buildspec as a process, with the project's role and a Docker that only pretends.

moto's builds succeed without running anything, and its CloudFormation knows no projects.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moto.cloudformation import parsing
from moto.codebuild.models import codebuild_backends
from moto.core.common_models import CloudFormationModel

from localaws.api import Request, Service
from localaws.services import cloudformation, codebuild_task
from localaws.services.cloudformation import Client, Kind, Properties
from localaws.services.codebuild_model import BUILDS, Build, CodeBuild
from localaws.services.codebuild_run import Run

if TYPE_CHECKING:
    from localaws.recorder import Call
    from localaws.server import LocalAws

PROJECT = "AWS::CodeBuild::Project"
NOT_SHOWN = (
    "Docker: Dockerfiles are read, not run, and an image is a manifest without layers (the buildspec, its script, the AWS command line "
    "and the registries' rules are real)"
)
"""What a rehearsed build does not show, for whoever prints a rehearsal's result."""


def install(aws: LocalAws) -> None:
    """Builds as processes, projects of CloudFormation, and `codebuild:startBuild.sync` of state machines."""
    parsing.get_model_list.cache_clear()
    for cached in (parsing.get_model_map, parsing.get_name_type_map):
        cached.cache_clear()
    codebuild_task.install(aws)
    Builds(aws)


class Region(CodeBuild):
    """Builds of moto's projects, as processes."""

    def __init__(self, region: str, aws: LocalAws) -> None:
        super().__init__(region, time, aws.account, self._project)
        self._aws = aws
        self.runs: dict[str, Run] = {}

    def begin(self, build: Build) -> None:
        run = self.runs[build.id] = Run(self._aws, build, self.region)
        threading.Thread(target=run.run, name=build.id, daemon=True).start()

    def end(self, build: Build) -> None:
        self.runs[build.id].stop()

    def _project(self, name: str) -> Mapping[str, Any] | None:
        project = codebuild_backends[self.account][self.region].codebuild_projects.get(name)
        return None if project is None else project.project_metadata


class Builds:
    """All builds of a local AWS."""

    def __init__(self, aws: LocalAws) -> None:
        self._aws = aws
        self._turn = threading.Lock()
        self._regions: dict[str, Region] = {}
        Service("codebuild", invalid="InvalidInputException", answer=self._answer, only=BUILDS).install(aws)
        aws.at_stop(self._stop_all)

    def _answer(self, call: Call, request: Request) -> Mapping[str, Any]:
        with self._turn:
            region = self._regions.setdefault(call.region, Region(call.region, self._aws))
        return region.answer(call.action, request)

    def _stop_all(self) -> None:
        runs = [run for region in list(self._regions.values()) for run in list(region.runs.values())]
        for run in runs:
            run.stop()
        deadline = time.monotonic() + 5
        while any(run.build.runs for run in runs) and time.monotonic() < deadline:
            time.sleep(0.02)


def _project(client: Client, name: str, properties: Properties) -> str:
    wanted = {"Name": name, **properties}
    client("codebuild").create_project(**_as_the_api_has_it(wanted))
    return str(wanted["Name"])


def _as_the_api_has_it(value: Any) -> Any:
    """Names of a template begin with capitals, and one word is spelt otherwise."""
    if isinstance(value, Mapping):
        return {
            "buildspec" if name == "BuildSpec" else name[0].lower() + name[1:]: _as_the_api_has_it(one)
            for name, one in value.items()
        }
    if isinstance(value, list):
        return [_as_the_api_has_it(one) for one in value]
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


cloudformation.KINDS[PROJECT] = Kind(
    _project,
    lambda client, name, _: client("codebuild").delete_project(name=name),
    lambda name, account, region: {"Arn": f"arn:aws:codebuild:{region}:{account}:project/{name}"},
)


class Project(cloudformation.Resource, CloudFormationModel):  # type: ignore[misc]
    """moto's parser finds it by its type."""

    kind = PROJECT
