"""CodeBuild: a build runs its project's own buildspec as a process, with the project's role and a Docker that only pretends.

moto's builds succeed without running anything, and its CloudFormation knows no projects.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moto.cloudformation import parsing
from moto.codebuild import responses as api
from moto.codebuild.exceptions import ResourceNotFoundException
from moto.core.common_models import CloudFormationModel

from localaws.services import cloudformation, codebuild_task
from localaws.services.cloudformation import Client, Kind, Properties
from localaws.services.codebuild_run import Build

if TYPE_CHECKING:
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


class Builds:
    """All builds of a local AWS."""

    def __init__(self, aws: LocalAws) -> None:
        self._aws = aws
        self._lock = threading.Lock()
        self._builds: dict[str, Build] = {}
        self._tokens: dict[tuple[str, str], Build] = {}
        builds = self
        aws.patch(api.CodeBuildResponse, "start_build", lambda self: builds.start(self))
        aws.patch(api.CodeBuildResponse, "batch_get_builds", lambda self: builds.get(self))
        aws.patch(api.CodeBuildResponse, "stop_build", lambda self: builds.stop(self))
        aws.at_stop(self._stop_all)

    def start(self, request: Any) -> Any:
        """The same token means the same build."""
        name, token = request._get_param("projectName"), request._get_param("idempotencyToken") or str(uuid.uuid4())
        project = request.codebuild_backend.codebuild_projects.get(name)
        if project is None:
            raise ResourceNotFoundException(f"Project cannot be found: {name}")
        with self._lock:
            build = self._tokens.get((name, token))
            if build is None:
                variables = request._get_param("environmentVariablesOverride") or []
                overrides = {str(one["name"]): str(one["value"]) for one in variables}
                build = Build(self._aws, project.project_metadata, overrides, request.region)
                self._tokens[name, token] = self._builds[build.id] = build
                threading.Thread(target=build.run, name=build.id, daemon=True).start()
        return api.ActionResult({"build": build.described()})

    def get(self, request: Any) -> Any:
        asked = request._get_param("ids")
        found = [self._builds[one].described() for one in asked if one in self._builds]
        return api.ActionResult({"builds": found, "buildsNotFound": [one for one in asked if one not in self._builds]})

    def stop(self, request: Any) -> Any:
        build = self._builds.get(request._get_param("id"))
        if build is None:
            raise ResourceNotFoundException("Build cannot be found")
        build.stop()
        return api.ActionResult({"build": build.described()})

    def _stop_all(self) -> None:
        for build in list(self._builds.values()):
            build.stop()
        deadline = time.monotonic() + 5
        while any(build.runs for build in list(self._builds.values())) and time.monotonic() < deadline:
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
