"""States that start a build, a job or another execution and wait for its end (`.sync`, and `.sync:2` of an execution).

moto's interpreter lacks builds. Its own versions of the others ignore how the work was told to end, and let it run on when the
execution is stopped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from moto.stepfunctions.parser.api import HistoryEventType, TaskFailedEventDetails
from moto.stepfunctions.parser.asl.component.common.error_name.custom_error_name import CustomErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import FailureEvent, FailureEventException
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import StatesErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import StatesErrorNameType
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service import StateTaskService
from moto.stepfunctions.parser.asl.eval.event.event_detail import EventDetails
from moto.stepfunctions.parser.asl.parse import preprocessor
from moto.stepfunctions.parser.asl.utils import boto_client

from localaws import protocols
from localaws.conditions import EXECUTION
from localaws.recorder import Answer
from localaws.services.batch_jobs import ENDED

if TYPE_CHECKING:
    from localaws.recorder import Call, Environ
    from localaws.server import LocalAws

ABORTED = "Terminated by AWS Step Functions: the state that waited has ended"
MANAGED_RULES = "StepFunctionsGetEvent"
"""Prefix of the rules by which Step Functions learns that work has ended."""
USERS_OWN = frozenset({"tags", "parameters", "input"})
"""Parameters whose keys are the user's own, and keep their spelling."""
Found = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Work:
    """What a state starts. The functions take the service's client."""

    resource: str
    """What the state's Resource ends with."""
    rule: str
    """The rule of EventBridge that Step Functions makes with the machine's role."""
    service: str
    """Name of the service as in errors; in lower case its name in boto3."""
    operation: str
    start: Callable[[Any, Found], str]
    """Takes the request, returns the id of what it started."""
    found: Callable[[Any, str], list[Found]]
    """The description of what has this id."""
    ended: Callable[[Found], bool]
    well: Callable[[Found], bool]
    result: Callable[[Found], Found]
    """The state's result, from the description in the spelling of states."""
    stop: Callable[[Any, str], object]
    look_s: float


BUILD = Work(
    "codebuild:startBuild.sync",
    "StepFunctionsGetEventForCodeBuildStartBuildRule",
    "CodeBuild",
    "StartBuild",
    start=lambda client, request: str(client.start_build(**request)["build"]["id"]),
    found=lambda client, build: list(client.batch_get_builds(ids=[build])["builds"]),
    ended=lambda build: bool(build["buildComplete"]),
    well=lambda build: bool(build["buildStatus"] == "SUCCEEDED"),
    result=lambda build: {"Build": build},
    stop=lambda client, build: client.stop_build(id=build),
    look_s=0.1,
)
JOB = Work(
    "batch:submitJob.sync",
    "StepFunctionsGetEventsForBatchJobsRule",
    "Batch",
    "SubmitJob",
    start=lambda client, request: str(client.submit_job(**request)["jobId"]),
    found=lambda client, job: list(client.describe_jobs(jobs=[job])["jobs"]),
    ended=lambda job: job["status"] in ENDED,
    well=lambda job: bool(job["status"] == "SUCCEEDED"),
    result=lambda job: job,
    stop=lambda client, job: client.terminate_job(jobId=job, reason=ABORTED),
    look_s=0.2,
)


CHILD = Work(
    "states:startExecution.sync:2",
    "StepFunctionsGetEventsForStepFunctionsExecutionRule",
    "StepFunctions",
    "StartExecution",
    start=lambda client, request: str(client.start_execution(**_with_text(request))["executionArn"]),
    found=lambda client, execution: [client.describe_execution(executionArn=execution)],
    ended=lambda execution: execution["status"] != "RUNNING",
    well=lambda execution: bool(execution["status"] == "SUCCEEDED"),
    result=lambda execution: {
        name: json.loads(value) if name in ("Input", "Output") else value for name, value in execution.items()
    },
    stop=lambda client, execution: client.stop_execution(executionArn=execution, cause=ABORTED),
    look_s=0.1,
)
CHILD_AS_TEXT = replace(CHILD, resource="states:startExecution.sync", result=lambda execution: execution)


def _with_text(request: Found) -> Found:
    given = request.get("input", {})
    return {**request, "input": given if isinstance(given, str) else json.dumps(given, separators=(",", ":"))}


def install(aws: LocalAws, work: Work) -> None:
    """Lets states start this work, until `aws.stop()`."""

    def task_for(original: Any, resource: Any) -> Any:
        ours = resource.resource_arn.endswith(f":::{work.resource}")
        return SyncTask(work, loses_stop) if ours else original(resource)

    def loses_stop(execution: str) -> bool:
        return aws.conditions.fault("stop-lost", {EXECUTION: execution}) is not None

    aws.wrap(preprocessor, "state_task_for", task_for)


def answer_for_managed_rules(call: Call, _: Environ) -> Answer | None:
    """Accepts the rules that Step Functions makes, which deliver nothing here, so that the calls are on record and can be denied."""
    name = str(call.parameters.get("Name") or call.parameters.get("Rule") or "")
    return Answer(200, b"{}") if call.service == "events" and name.startswith(MANAGED_RULES) else None


class SyncTask(StateTaskService):  # type: ignore[misc]
    """Uses the machine's role to start the work, look at it, and stop it if the state ends before the work does.

    Without the rights on the rule AWS refuses to create the machine; here the state fails.
    """

    def __init__(self, work: Work, loses_stop: Callable[[str], bool]) -> None:
        """`loses_stop` says whether the stop of what an execution (by name) waits for gets lost: AWS promises its best effort."""
        super().__init__()
        self._work, self._loses_stop = work, loses_stop

    def _get_supported_parameters(self) -> set[str]:
        shape = protocols.operation(self._work.service.lower(), self._work.operation).input_shape
        return set(_first(dict.fromkeys(shape.members), str.upper))

    def _get_sfn_resource(self) -> str:
        return f"{self.resource.api_action}.{self.resource.condition}"

    def _eval_service_task(
        self, env: Any, resource_runtime_part: Any, normalised_parameters: Any, state_credentials: Any
    ) -> None:
        work = self._work

        def client_of(service: str) -> Any:
            return boto_client.boto_client_for(
                service=service, region=resource_runtime_part.region, state_credentials=state_credentials
            )

        client, events = client_of(work.service.lower()), client_of("events")
        events.put_rule(Name=work.rule)
        events.put_targets(Rule=work.rule, Targets=[{"Id": "states", "Arn": self.resource.resource_arn}])
        events.describe_rule(Name=work.rule)
        identity = work.start(client, _first(normalised_parameters, str.lower))
        while True:
            time.sleep(work.look_s)
            if (found := work.found(client, identity)) and work.ended(found[0]):
                break
            if not env.is_running():
                self._stop(client, identity, env.states.context_object.context_object_data["Execution"]["Name"])
                return
        found[0].pop("ResponseMetadata", None)
        told = work.result(_first(found[0], str.upper))
        if not work.well(found[0]):
            name = StatesErrorNameType.StatesTaskFailed
            raise FailureEventException(self._failure(env, StatesErrorName(typ=name), name.to_name(), json.dumps(told)))
        env.stack.append(told)

    def _stop(self, client: Any, identity: str, execution: str) -> None:
        if not self._loses_stop(execution):
            self._work.stop(client, identity)

    def _from_error(self, env: Any, ex: Exception) -> Any:
        if isinstance(ex, ClientError):
            name = f"{self._work.service}.{ex.response['Error']['Code'].removesuffix('Exception')}Exception"
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
    """Changes the first letter of names to the other side's spelling, but not of the user's own. Times become milliseconds."""
    if isinstance(value, Mapping):
        return {
            case(name[0]) + name[1:]: one if name.lower() in USERS_OWN else _first(one, case)
            for name, one in value.items()
        }
    if isinstance(value, list):
        return [_first(one, case) for one in value]
    return int(value.timestamp() * 1000) if isinstance(value, datetime) else value
