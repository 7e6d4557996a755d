"""Batch on Fargate over HTTP: the model with a real clock; each child of an array is a process that runs its image's command.

moto would need Docker, and its CloudFormation requires service roles that Fargate does not have.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import moto.batch.models  # noqa: F401  (its classes must come before MODELS in the list of moto's models)

from localaws import protocols
from localaws.api import Service
from localaws.services import cloudformation, sync_tasks
from localaws.services.batch_attempt import Fargate
from localaws.services.batch_jobs import Job, Submitted
from localaws.services.batch_model import Batch
from localaws.services.cloudformation import Client, Kind, Properties

if TYPE_CHECKING:
    from localaws.server import LocalAws

LOOK_S = 0.05
"""How often a fault checks whether its moment has come."""
AT_ONCE = 8
"""Containers that run at once on this computer, even if the queue allows more."""
RETIRED = "ECS is performing maintenance on the underlying infrastructure hosting the task."
NOT_SHOWN = (
    f"Fargate: at most {AT_ONCE} children at once, whatever the queue allows",
    "images of children: a child is a process of the local Python with AWS's SDK; its file system is not read-only, and its user is yours",
)
"""What a rehearsed array does not show, for the printed result of a rehearsal; the last, where images are not really built."""
_current: list[Jobs] = []


def install(aws: LocalAws) -> None:
    """Installs Batch in every region, its CloudFormation types, and `batch:submitJob.sync` for state machines, until `aws.stop()`."""
    cloudformation.forget_models()
    sync_tasks.install(aws, sync_tasks.JOB)
    _current[:] = [Jobs(aws)]


def jobs() -> list[Job]:
    """Lists every job of the local AWS that was installed last: plain jobs and children of arrays."""
    regions = list(_current[-1].regions.values())
    return [job for region in regions for made in list(region.submitted.values()) for job in made.jobs]


class Region(Batch):
    """Runs submitted jobs on this computer, in the place of Fargate."""

    def __init__(self, region: str, owner: Jobs, account: str) -> None:
        super().__init__(region, time, account)
        self._owner = owner

    def begin(self, made: Submitted) -> None:
        self._owner.begin(made)

    def end(self, job: Job) -> None:
        self._owner.end(job)


class Jobs:
    """Holds all jobs of a local AWS."""

    def __init__(self, aws: LocalAws) -> None:
        self._aws = aws
        self._turn = threading.RLock()
        self._runnable: deque[Job] = deque()
        self._running: set[Job] = set()
        self._struck: set[tuple[str, str]] = set()
        service = Service(aws, "batch", lambda region: Region(region, self, aws.account), invalid="ClientException")
        self.regions = service.regions
        aws.at_stop(self._end_all)

    def begin(self, made: Submitted) -> None:
        with self._turn:
            self._runnable.extend(made.jobs)
        self._next()

    def end(self, job: Job) -> None:
        """Sends SIGTERM to a running job; ends a waiting one."""
        job.stopping.set()
        self._drop(job)
        if job.attempts and job.status == "RUNNING":
            self._aws.later(0, partial(self._fargate(job).end, job.attempts[-1], job.reason))

    # running

    def _next(self) -> None:
        """Starts the jobs that may run now: as many as the queue's environments and this computer allow."""
        with self._turn:
            for job in list(self._runnable):
                if len(self._running) >= AT_ONCE:
                    return
                if not self._fits(job):
                    continue
                self._runnable.remove(job)
                self._running.add(job)
                threading.Thread(target=self._run, args=(job,), name=job.id, daemon=True).start()

    def _fits(self, job: Job) -> bool:
        registry = self.regions[job.submitted.region].registry
        queue = registry.queues.get(job.submitted.queue)
        if queue is None:
            return False
        used = sum(_vcpus(one) for one in self._running if one.submitted.queue == job.submitted.queue)
        return used + _vcpus(job) <= registry.vcpus(queue)

    def _run(self, job: Job) -> None:
        """Runs one attempt; then the job has ended, or waits in the queue again."""
        conditions = self._aws.conditions
        try:
            self._enter(job, "STARTING")
            if not job.stopping.wait(conditions.scaled(conditions.task_start_s, self._aws.chance)):
                self._attempt(job)
            again = not job.stopping.is_set() and job.attempts[-1].code != 0 and job.tried_again()
            if not again:
                self._finish(job)
        finally:
            with self._turn:
                self._running.discard(job)
        if again:
            self._enter(job, "RUNNABLE")
            with self._turn:
                self._runnable.append(job)
        self._next()

    def _attempt(self, job: Job) -> None:
        attempt = self._fargate(job).new()
        job.attempts.append(attempt)
        self._enter(job, "RUNNING")
        if job.stopping.is_set():  # whoever ended it a moment ago saw no attempt that runs
            self._fargate(job).end(attempt, job.reason)
        self._strike(job)
        if (limit := job.submitted.timeout_s) is not None:
            why = "Job attempt duration exceeded timeout"
            self._aws.later(limit / self._aws.conditions.speed, partial(self._end_attempt, job, len(job.attempts), why))
        self._fargate(job).run(attempt, job.submitted.properties, job.variables())

    def _finish(self, job: Job) -> None:
        last = job.attempts[-1] if job.attempts else None
        well = last is not None and last.code == 0 and not job.terminated
        job.reason = job.reason or (last.status_reason if last else "")
        self._enter(job, "SUCCEEDED" if well else "FAILED")

    def _drop(self, job: Job) -> None:
        """Removes a job from the queue, if it is still there."""
        with self._turn:
            waiting = job in self._runnable
            if waiting:
                self._runnable.remove(job)
        if waiting:
            self._finish(job)

    def _enter(self, job: Job, status: str) -> None:
        job.enter(status)
        made = job.submitted
        self._aws.emit("aws.batch", "Batch Job State Change", job.described(), [job.arn], made.region)
        if made.is_array and made.told != made.status:
            made.told = made.status
            self._aws.emit("aws.batch", "Batch Job State Change", made.described(), [made.arn], made.region)

    def _fargate(self, job: Job) -> Fargate:
        return Fargate(self._aws, job.submitted.region)

    # faults

    def _strike(self, job: Job) -> None:
        """Applies `task-retired` and `child-killed`, once per line, some time after the start of an attempt."""
        given = {one["name"]: one["value"] for one in job.submitted.properties["environment"]}
        marks = given | job.variables()
        for name in ("task-retired", "child-killed"):
            fault = self._aws.conditions.fault(name, marks)
            if fault and (name, job.id) not in self._struck:
                self._struck.add((name, job.id))
                strike = self._end_attempt if name == "task-retired" else self._kill
                after = fault.seconds("after") / self._aws.conditions.speed
                self._aws.later(after, partial(strike, job, len(job.attempts), RETIRED))

    def _end_attempt(self, job: Job, number: int, why: str) -> None:
        if len(job.attempts) == number and job.status == "RUNNING":
            self._fargate(job).end(job.attempts[-1], why)

    def _kill(self, job: Job, number: int, why: str) -> None:
        """Kills the container; on a slow computer it may have yet to start."""
        if len(job.attempts) != number or job.status != "RUNNING":
            return
        if container := job.attempts[-1].container:
            container.kill()
        else:
            self._aws.later(LOOK_S, partial(self._kill, job, number, why))

    def _end_all(self) -> None:
        with self._turn:
            self._runnable.clear()
            running = list(self._running)
        for job in running:
            job.stopping.set()
        deadline = time.monotonic() + 10
        while self._running and time.monotonic() < deadline:
            for job in running:
                if job.attempts and (container := job.attempts[-1].container):
                    container.kill()
            time.sleep(0.02)


def _vcpus(job: Job) -> float:
    needs = {one["type"]: one["value"] for one in job.submitted.properties["resourceRequirements"]}
    return float(needs.get("VCPU", 0.25))


# CloudFormation

USERS_OWN = ("Options", "Tags", "Parameters")
"""Maps whose names are the user's and not the API's."""


def _wanted(properties: Mapping[str, Any], operation: str) -> dict[str, Any]:
    """Leaves out what only CloudFormation knows."""
    shape = protocols.operation("batch", operation).input_shape
    assert shape is not None
    found = cloudformation.as_the_api_has_it(properties, own=USERS_OWN)
    return {name: value for name, value in found.items() if name in shape.members}


def _environment(client: Client, name: str, properties: Properties) -> str:
    wanted = _wanted({"ComputeEnvironmentName": name[-128:], **properties}, "CreateComputeEnvironment")
    resources = wanted.get("computeResources", {})
    wanted["type"] = str(wanted["type"]).upper()
    wanted["computeResources"] = {**resources, "maxvCpus": int(resources["maxvCpus"])}
    return str(client("batch").create_compute_environment(**wanted)["computeEnvironmentArn"])


def _no_environment(client: Client, arn: str, _: Properties) -> None:
    client("batch").update_compute_environment(computeEnvironment=arn, state="DISABLED")
    client("batch").delete_compute_environment(computeEnvironment=arn)


def _queue(client: Client, name: str, properties: Properties) -> str:
    wanted = _wanted({"JobQueueName": name[-128:], **properties}, "CreateJobQueue")
    return str(client("batch").create_job_queue(**wanted)["jobQueueArn"])


def _no_queue(client: Client, arn: str, _: Properties) -> None:
    client("batch").update_job_queue(jobQueue=arn, state="DISABLED")
    client("batch").delete_job_queue(jobQueue=arn)


def _definition(client: Client, name: str, properties: Properties) -> str:
    wanted = _wanted({"JobDefinitionName": name[-128:], **properties}, "RegisterJobDefinition")
    return str(client("batch").register_job_definition(**wanted)["jobDefinitionArn"])


def _no_definition(client: Client, arn: str, _: Properties) -> None:
    client("batch").deregister_job_definition(jobDefinition=arn)


MODELS = cloudformation.models(
    {
        "AWS::Batch::ComputeEnvironment": Kind(
            _environment, _no_environment, lambda arn, *_: {"ComputeEnvironmentArn": arn}
        ),
        "AWS::Batch::JobQueue": Kind(_queue, _no_queue, lambda arn, *_: {"JobQueueArn": arn}),
        "AWS::Batch::JobDefinition": Kind(_definition, _no_definition, lambda arn, *_: {"JobDefinitionArn": arn}),
    }
)
"""moto's own classes of these types come earlier in its list of models; the last class of a type counts."""
