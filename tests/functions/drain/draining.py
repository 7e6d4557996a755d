"""A deployment on the fake, and the drain behind its machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from contract import items, names
from contract.errors import StillRunning
from contract.jobs import Job
from localaws.services.ec2_instance import Machine
from tests.builders import JOB
from tests.fakes.aws import Aws
from tests.fakes.cloudformation import CloudFormation
from tests.fakes.executions import GRID_MACHINE, MACHINE, SEARCH_MACHINE, Execution
from tests.fakes.faults import Mishap
from tests.fakes.functions import Functions, Outcome
from tests.fakes.state import stored
from tests.fakes.yard import admitted, deployed, home

DRAIN = MACHINE.replace(names.machine("yard"), names.drain_machine("yard"))
AGAIN_S, PATIENCE_S = JOB.timing.drain_again_s, JOB.timing.drain_patience_s
CLOUDFORMATION_S = 3600.0


@dataclass
class Yard:
    """A deployment whose stacks stand."""

    aws: Aws
    functions: Functions
    cloudformation: CloudFormation
    again_s: float = AGAIN_S
    """How often the machine looks; a test of the end of its patience has it look less often."""
    numbers: list[int] = field(default_factory=list)
    physical: str = names.drain_machine(JOB.deployment)
    """The id that CloudFormation knows the resource by."""

    def start(self, name: str = "job-1") -> Job:
        """A job's execution runs, admitted and not yet launched."""
        execution = self.aws.states.executions.begin(name)
        return admitted(self.aws, replace(JOB, id=name, execution=execution.arn))

    def train(self, name: str = "job-1", attempt: int = 1) -> Job:
        """A job trains since a while."""
        job = self.start(name)
        assert self.launch(name, attempt=attempt).error == ""
        self.aws.clock.run(60)
        return job

    def launch(self, name: str = "job-1", *mishaps: Mishap, attempt: int = 1) -> Outcome:
        return self.functions.invoke("launcher", {"job": name, "attempt": attempt}, mishaps)

    def request(self, kind: str) -> dict[str, Any]:
        self.numbers.append(1)
        return {
            "RequestType": kind,
            "ResponseURL": self.cloudformation.url,
            "StackId": "arn:aws:cloudformation:eu-central-1:123456789012:stack/yard-reaper/1",
            "RequestId": f"request-{len(self.numbers)}",
            "LogicalResourceId": "Drain",
            "ResourceType": "Custom::Drain",
            "ResourceProperties": {},
            **({"PhysicalResourceId": self.physical} if kind != "Create" else {}),
        }

    def ask(self, kind: str) -> None:
        assert self.functions.invoke("drain", self.request(kind)).error == ""

    def destroy(self, within_s: float = CLOUDFORMATION_S) -> dict[str, Any]:
        """Deletes the resource as CloudFormation does, and returns its answer, which came in time."""
        asked = self.aws.clock.now
        self.ask("Delete")
        execution = list(self.aws.states.executions.known.values())[-1]
        assert execution.machine == DRAIN
        self.machine(execution)
        assert self.aws.clock.now - asked <= within_s
        return self.cloudformation.answers[-1]

    def without_machines(self) -> None:
        """Workflow and Grid are gone, and the drain is the reaper's own."""
        self.aws.states.executions.machines -= {MACHINE, GRID_MACHINE, SEARCH_MACHINE}

    def machine(self, execution: Execution) -> None:
        """The drain machine, as the reaper's stack has it."""
        given, problem = json.loads(execution.input), None
        for _ in range(int(PATIENCE_S / AGAIN_S) + 5):
            outcome = self.run_drain(given)
            if outcome.error != StillRunning.__name__:
                problem = {"error": outcome.error, "cause": outcome.cause} if outcome.error else None
                break
            self.aws.clock.run(self.again_s)
        else:
            raise AssertionError("the drain is never over")
        answer = {"action": "answer", "request": given["request"], "problem": problem}
        assert self.functions.invoke("drain", answer).error == ""

    def run_drain(self, given: dict[str, Any] | None = None, *mishaps: Mishap) -> Outcome:
        given = given or {"request": self.request("Delete"), "since": self.aws.clock.now}
        return self.functions.invoke("drain", {"action": "drain", **given}, mishaps)

    def left(self) -> list[Machine]:
        """All that is not gone."""
        machines = [one for ec2 in self.aws.ec2.values() for one in ec2.machines.values()]
        return [one for one in machines if one.state(self.aws.clock.now) != "terminated"]

    def closed(self) -> bool:
        return stored(self.aws, items.ADMISSION_CLOSED) is not None

    def versions(self, bucket: str) -> int:
        return sum(map(len, self.aws.s3.buckets[bucket].objects.values()))


@contextmanager
def draining(cloudformation: CloudFormation) -> Iterator[Yard]:
    """A deployment on the fake, with a CloudFormation that has heard nothing yet."""
    cloudformation.answers.clear()
    cloudformation.types.clear()
    cloudformation.refusals = 0
    aws = deployed()
    aws.states.executions.machines.add(DRAIN)
    home(aws).shutting_s = 20.0
    made = Yard(aws, Functions(aws), cloudformation)
    with made.functions.installed():
        yield made
