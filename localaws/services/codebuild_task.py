"""`codebuild:startBuild.sync`: a state that starts a build and waits for its end; moto's interpreter lacks it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from moto.stepfunctions.parser.api import HistoryEventType, TaskFailedEventDetails
from moto.stepfunctions.parser.asl.component.common.error_name.custom_error_name import CustomErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import FailureEvent, FailureEventException
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import StatesErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import StatesErrorNameType
from moto.stepfunctions.parser.asl.component.state.exec.state_task import state_task_factory
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service import StateTaskService
from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails
from moto.stepfunctions.parser.asl.utils import boto_client

if TYPE_CHECKING:
    from localaws.server import LocalAws

LOOK_S = 0.1


def install(aws: LocalAws, task: type[BuildTask] | None = None) -> None:
    original, new = state_task_factory.state_task_service_for, task or BuildTask

    def service_for(service_name: str) -> Any:
        return new() if service_name == new.SERVICE.lower() else original(service_name)

    aws.patch(state_task_factory, "state_task_service_for", service_for)


class BuildTask(StateTaskService):  # type: ignore[misc]
    """Uses the machine's role to start the build, look at it, and stop it if the state ends before the build does."""

    SERVICE = "CodeBuild"

    def _get_supported_parameters(self) -> set[str]:
        return {"ProjectName", "IdempotencyToken", "EnvironmentVariablesOverride"}

    def _get_sfn_resource(self) -> str:
        return f"{self.resource.api_action}.{self.resource.condition}"

    def _eval_service_task(
        self, env: Any, resource_runtime_part: Any, normalised_parameters: Any, state_credentials: Any
    ) -> None:
        codebuild = boto_client.boto_client_for(
            service="codebuild", region=resource_runtime_part.region, state_credentials=state_credentials
        )
        build = codebuild.start_build(**_first(normalised_parameters, str.lower))["build"]
        while not build["buildComplete"]:
            if not env.is_running():
                codebuild.stop_build(id=build["id"])
                return
            time.sleep(LOOK_S)
            (build,) = codebuild.batch_get_builds(ids=[build["id"]])["builds"]
        told = {"Build": _first(build, str.upper)}
        if build["buildStatus"] != "SUCCEEDED":
            name = StatesErrorNameType.StatesTaskFailed
            raise FailureEventException(self._failure(env, StatesErrorName(typ=name), name.to_name(), json.dumps(told)))
        env.stack.append(told)

    def _from_error(self, env: Any, ex: Exception) -> Any:
        if isinstance(ex, ClientError):
            name = f"{self.SERVICE}.{ex.response['Error']['Code']}"
            return self._failure(env, CustomErrorName(name), name, ex.response["Error"]["Message"])
        return super()._from_error(env=env, ex=ex)

    def _failure(self, env: Any, error: Any, name: str, cause: str) -> Any:
        details = TaskFailedEventDetails(
            resource=self._get_sfn_resource(), resourceType=self._get_sfn_resource_type(), error=name, cause=cause
        )
        return FailureEvent(
            env=env,
            error_name=error,
            event_type=HistoryEventType.TaskFailed,
            event_details=EventDetails(taskFailedEventDetails=details),
        )


def _first(value: Any, case: Any) -> Any:
    """Changes the first letter of names to the other side's spelling. Times become milliseconds."""
    if isinstance(value, Mapping):
        return {case(name[0]) + name[1:]: _first(one, case) for name, one in value.items()}
    if isinstance(value, list):
        return [_first(one, case) for one in value]
    return int(value.timestamp() * 1000) if isinstance(value, datetime) else value
