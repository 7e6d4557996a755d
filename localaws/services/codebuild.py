"""CodeBuild over HTTP: a build runs its project's buildspec as a process, with the project's role and a stand-in for Docker.

moto's builds succeed without running anything, and its CloudFormation has no projects.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moto.codebuild.models import codebuild_backends

from localaws.api import Service
from localaws.services import cloudformation, sync_tasks
from localaws.services.cloudformation import Client, Kind, Properties
from localaws.services.codebuild_model import BUILDS, Build, CodeBuild
from localaws.services.codebuild_run import Run

if TYPE_CHECKING:
    from localaws.server import LocalAws

NOT_SHOWN = (
    "Docker: Dockerfiles are read, not run, and an image is a manifest without layers (the buildspec, its script, the AWS command line "
    "and the registries' rules are real)"
)
"""What a build by the stand-in for Docker does not show, for the printed result of a rehearsal."""


def install(aws: LocalAws) -> None:
    """Installs builds as processes, projects of CloudFormation, and `codebuild:startBuild.sync` for state machines."""
    cloudformation.forget_models()
    sync_tasks.install(aws, sync_tasks.BUILD)
    service = Service(
        aws, "codebuild", lambda region: Region(region, aws), invalid="InvalidInputException", only=BUILDS
    )
    aws.at_stop(lambda: _stop_all(service.regions))


class Region(CodeBuild):
    """Runs builds of moto's projects as processes."""

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


def _stop_all(regions: Mapping[str, Region]) -> None:
    runs = [run for region in list(regions.values()) for run in list(region.runs.values())]
    for run in runs:
        run.stop()
    deadline = time.monotonic() + 5
    while any(run.build.runs for run in runs) and time.monotonic() < deadline:
        time.sleep(0.02)


def _project(client: Client, name: str, properties: Properties) -> str:
    wanted = {"Name": name, **properties}
    client("codebuild").create_project(**cloudformation.as_the_api_has_it(wanted, spelt={"BuildSpec": "buildspec"}))
    return str(wanted["Name"])


MODELS = cloudformation.models(
    {
        "AWS::CodeBuild::Project": Kind(
            _project,
            lambda client, name, _: client("codebuild").delete_project(name=name),
            lambda name, account, region: {"Arn": f"arn:aws:codebuild:{region}:{account}:project/{name}"},
        )
    }
)
