"""Batch on the virtual clock: its jobs run nothing, and are in the status that a test says."""

from __future__ import annotations

from typing import Any

from localaws.services.batch_jobs import GRACE_S, WAITING, Job, Submitted
from localaws.services.batch_model import Batch
from tests.fakes.clock import Clock
from tests.fakes.wire import HOME

DEFINITION = {
    "jobDefinitionName": "definition",
    "type": "container",
    "platformCapabilities": ["FARGATE"],
    "containerProperties": {"image": "image", "executionRoleArn": "arn:aws:iam::123456789012:role/start"},
}
COMPUTE = {"type": "FARGATE", "maxvCpus": 4, "subnets": ["subnet-1"], "securityGroupIds": ["sg-1"]}


class FakeBatch(Batch):
    """One region. What was terminated while it ran has half a minute."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(HOME, clock)
        self.answer("RegisterJobDefinition", DEFINITION)
        self.open("queue")

    @property
    def jobs(self) -> dict[str, dict[str, Any]]:
        """JobDetail by id, of plain jobs and of arrays as a whole."""
        return {one.id: one.described() for one in self.submitted.values()}

    def open(self, queue: str) -> None:
        """The queue is there, with an environment of its own."""
        environment = {"computeEnvironmentName": queue, "type": "MANAGED", "computeResources": COMPUTE}
        self.answer("CreateComputeEnvironment", environment)
        order = [{"order": 1, "computeEnvironment": queue}]
        self.answer("CreateJobQueue", {"jobQueueName": queue, "priority": 1, "computeEnvironmentOrder": order})

    def add(
        self,
        job: str,
        *,
        name: str = "job",
        queue: str = "queue",
        children: int = 0,
        tags: dict[str, str] | None = None,
        age_s: float = 0.0,
        ended: str = "",
    ) -> None:
        """For tests: a job that runs, or an array whose children do; `ended` is `terminated` or `cancelled`, but not over yet."""
        array = {"arrayProperties": {"size": children}} if children else {}
        wanted = {"jobName": name, "jobQueue": queue, "jobDefinition": "definition", "tags": tags or {}, **array}
        made = self.submit(wanted, job)
        made.created -= age_s
        for one in made.jobs:
            one.enter("RUNNING")
        if ended:
            whole = made if children else made.jobs[0]
            setattr(whole, ended, True)
            whole.reason = "ada had enough"

    def finish(self, job: str, status: str = "SUCCEEDED") -> None:
        """For tests: a job is over, and its children with it."""
        for one in self.submitted[job].jobs:
            one.enter(status)

    def begin(self, made: Submitted) -> None:
        """It runs when a test says so."""

    def end(self, job: Job) -> None:
        job.enter("FAILED", 0.0 if job.status in WAITING else GRACE_S)
