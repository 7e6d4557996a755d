"""`batch:submitJob.sync`: a state that submits a job and waits for its end; stopping the execution terminates the job.

moto's own version looks once a second, ignores how the job was told to end, and lets the job run on.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import FailureEventException
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import StatesErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name_type import StatesErrorNameType
from moto.stepfunctions.parser.asl.utils import boto_client

from localaws.services import codebuild_task
from localaws.services.batch_jobs import ENDED
from localaws.services.codebuild_task import BuildTask, _first

if TYPE_CHECKING:
    from localaws.server import LocalAws

LOOK_S = 0.2
ABORTED = "Terminated by AWS Step Functions: the execution was stopped"


def install(aws: LocalAws) -> None:
    codebuild_task.install(aws, BatchTask)


class BatchTask(BuildTask):
    """Uses the machine's role to submit the job, look at it, and terminate it if the state ends before the job does."""

    SERVICE = "Batch"

    def _get_supported_parameters(self) -> set[str]:
        return {
            "ArrayProperties",
            "ContainerOverrides",
            "DependsOn",
            "JobDefinition",
            "JobName",
            "JobQueue",
            "Parameters",
            "PropagateTags",
            "RetryStrategy",
            "Tags",
            "Timeout",
        }

    def _eval_service_task(
        self, env: Any, resource_runtime_part: Any, normalised_parameters: Any, state_credentials: Any
    ) -> None:
        batch = boto_client.boto_client_for(
            service="batch", region=resource_runtime_part.region, state_credentials=state_credentials
        )
        tags = normalised_parameters.get("Tags", {})
        request = {**_first(normalised_parameters, str.lower), **({"tags": tags} if tags else {})}
        identity = batch.submit_job(**request)["jobId"]
        job = self._ended(env, batch, identity)
        if job is None:
            return
        told = _first(job, str.upper)
        if job["status"] != "SUCCEEDED":
            name = StatesErrorNameType.StatesTaskFailed
            raise FailureEventException(self._failure(env, StatesErrorName(typ=name), name.to_name(), json.dumps(told)))
        env.stack.append(told)

    @staticmethod
    def _ended(env: Any, batch: Any, identity: str) -> dict[str, Any] | None:
        """Returns the ended job, None if the execution ends first."""
        while env.is_running():
            found: list[dict[str, Any]] = batch.describe_jobs(jobs=[identity])["jobs"]
            if found and found[0]["status"] in ENDED:
                return found[0]
            time.sleep(LOOK_S)
        batch.terminate_job(jobId=identity, reason=ABORTED)
        return None
