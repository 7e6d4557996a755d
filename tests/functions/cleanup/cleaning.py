"""A deployment whose one job ends, for the tests of the cleanup."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from contract import items, keys
from contract.jobs import Job
from localaws.services.ec2_instance import Machine
from tests.builders import JOB
from tests.fakes.aws import Aws
from tests.fakes.executions import Execution
from tests.fakes.faults import Mishap
from tests.fakes.functions import Functions, Outcome
from tests.fakes.state import stored
from tests.fakes.yard import admitted, deployed

AGAIN_S = JOB.timing.cleanup_again_s
PROVEN_S = 30.0
"""EC2 shows what was told to end as running for a moment, so that the second try, 15 s later, proves the end."""
PREFIX = keys.JobPrefix(JOB.id)


@dataclass
class Yard:
    """A deployment with one job whose execution runs, and the cleanup behind its rule and queue."""

    aws: Aws
    functions: Functions
    job: Job
    execution: Execution

    def launch(self, *mishaps: Mishap, attempt: int = 1) -> Outcome:
        return self.functions.invoke("launcher", {"job": self.job.id, "attempt": attempt}, mishaps)

    def terminate(self, attempt: int = 1, problem: dict[str, str] | None = None) -> Outcome:
        return self.functions.invoke("terminator", {"job": self.job.id, "attempt": attempt, "problem": problem})

    def train(self, attempt: int = 1) -> None:
        """The attempt was launched a while ago."""
        assert self.launch(attempt=attempt).error == ""
        self.aws.clock.run(60)

    def end(self, status: str = "ABORTED", error: str | None = None, cause: str | None = None) -> None:
        self.aws.states.executions.end(self.execution, status, error, cause)

    def abort(self) -> None:
        self.end("ABORTED", cause="somebody pressed Stop")

    def event(self) -> str:
        detail = self.aws.states.executions.detail(self.execution)
        return json.dumps(self.aws.events.event("aws.states", "Step Functions Execution Status Change", detail))

    def cleanups(self) -> list[float]:
        """When the cleanup ran, in seconds since the execution's end."""
        ended = self.execution.ended_at or 0.0
        return [at - ended for at, name, _ in self.functions.log if name == "cleanup"]

    def running(self) -> list[Machine]:
        return [one for ec2 in self.aws.ec2.values() for one in ec2.running()]

    @property
    def reported(self) -> bool:
        return self.aws.s3.read(self.job.home_bucket, PREFIX.result) is not None

    def report(self) -> dict[str, Any]:
        assert self.reported
        found: dict[str, Any] = json.loads(self.aws.s3.read(self.job.home_bucket, PREFIX.result) or b"")
        return found

    def closed(self) -> set[int]:
        return {number for number in range(1, 9) if stored(self.aws, items.closed(self.job.id, number)) is not None}

    def quiet(self) -> bool:
        return not self.aws.queue.messages and not self.aws.queue.dead


@contextmanager
def cleaning() -> Iterator[Yard]:
    aws = deployed()
    made = Yard(aws, Functions(aws), admitted(aws), aws.states.executions.begin(JOB.id))
    made.functions.clean_up()
    with made.functions.installed():
        yield made
