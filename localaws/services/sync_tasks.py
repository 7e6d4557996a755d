"""States that start a build or a job and wait for its end: `codebuild:startBuild.sync` and `batch:submitJob.sync`.

moto's interpreter lacks the first. Its own version of the second looks once a second, ignores how the job was told to end, and lets the
job run on when the execution is stopped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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

from localaws import protocols
from localaws.services.batch_jobs import ENDED

if TYPE_CHECKING:
    from localaws.server import LocalAws

ABORTED = "Terminated by AWS Step Functions: the execution was stopped"
Found = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Work:
    """What a state starts. The functions take the service's client."""

    service: str
    """Name of the service as in errors; in lower case its name in ARNs of resources."""
    operation: str
    start: Callable[[Any, Found], str]
    """Takes the request, returns the id of what it started."""
    found: Callable[[Any, str], list[Found]]
    """The description of what has this id."""
    ended: Callable[[Found], bool]
    well: Callable[[Found], bool]
    describe: Callable[[Found], Found]
    """The state's result, in the spelling of states."""
    stop: Callable[[Any, str], object]
    look_s: float


BUILD = Work(
    "CodeBuild",
    "StartBuild",
    start=lambda client, request: str(client.start_build(**request)["build"]["id"]),
    found=lambda client, build: list(client.batch_get_builds(ids=[build])["builds"]),
    ended=lambda build: bool(build["buildComplete"]),
    well=lambda build: bool(build["buildStatus"] == "SUCCEEDED"),
    describe=lambda build: {"Build": build},
    stop=lambda client, build: client.stop_build(id=build),
    look_s=0.1,
)
JOB = Work(
    "Batch",
    "SubmitJob",
    start=lambda client, request: str(client.submit_job(**request)["jobId"]),
    found=lambda client, job: list(client.describe_jobs(jobs=[job])["jobs"]),
    ended=lambda job: job["status"] in ENDED,
    well=lambda job: bool(job["status"] == "SUCCEEDED"),
    describe=lambda job: job,
    stop=lambda client, job: client.terminate_job(jobId=job, reason=ABORTED),
    look_s=0.2,
)


def install(aws: LocalAws, work: Work) -> None:
    """Lets states start this work, until `aws.stop()`."""

    def service_for(original: Any, service_name: str) -> Any:
        return SyncTask(work) if service_name == work.service.lower() else original(service_name)

    aws.wrap(state_task_factory, "state_task_service_for", service_for)


class SyncTask(StateTaskService):  # type: ignore[misc]
    """Uses the machine's role to start the work, look at it, and stop it if the state ends before the work does."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def _get_supported_parameters(self) -> set[str]:
        shape = protocols.operation(self._work.service.lower(), self._work.operation).input_shape
        return set(_first(dict.fromkeys(shape.members), str.upper))

    def _get_sfn_resource(self) -> str:
        return f"{self.resource.api_action}.{self.resource.condition}"

    def _eval_service_task(
        self, env: Any, resource_runtime_part: Any, normalised_parameters: Any, state_credentials: Any
    ) -> None:
        work, region = self._work, resource_runtime_part.region
        client = boto_client.boto_client_for(
            service=work.service.lower(), region=region, state_credentials=state_credentials
        )
        tags = {"tags": given} if (given := normalised_parameters.get("Tags")) else {}  # their keys are the user's own
        identity = work.start(client, {**_first(normalised_parameters, str.lower), **tags})
        while not ((found := work.found(client, identity)) and work.ended(found[0])):
            if not env.is_running():
                work.stop(client, identity)
                return
            time.sleep(work.look_s)
        told = _first(work.describe(found[0]), str.upper)
        if not work.well(found[0]):
            name = StatesErrorNameType.StatesTaskFailed
            raise FailureEventException(self._failure(env, StatesErrorName(typ=name), name.to_name(), json.dumps(told)))
        env.stack.append(told)

    def _from_error(self, env: Any, ex: Exception) -> Any:
        if isinstance(ex, ClientError):
            name = f"{self._work.service}.{ex.response['Error']['Code']}"
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
