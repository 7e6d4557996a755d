"""A deployed yard in which anything may happen: an execution, its nodes, strangers, and a weather of events."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from botocore.exceptions import BotoCoreError, ClientError

from contract import errors, keys, tags
from contract.codec import encode
from contract.reports import Exit, NodeReport, Phase, Progress
from tests.builders import JOB
from tests.fakes.ec2_machine import Machine
from tests.fakes.events import Event, fair
from tests.fakes.faults import Mishap
from tests.fakes.functions import Functions, Outcome
from tests.fakes.yard import admitted, deployed, home
from tests.properties.execution import Execution

BEAT_S = 60.0
BOOT_S = 45.0
EXPECTED = (errors.JobError, ClientError, BotoCoreError)
"""What a function may end with, besides being killed. The attendant puts several of them into one RuntimeError."""


@dataclass
class Node:
    """The agent on a machine, as far as anybody hears of it."""

    machine: Machine
    phase: Phase = Phase.PREPARING
    sequence: int = 0
    silent: bool = False
    exit: Exit | None = None

    @property
    def attempt(self) -> int:
        return int(self.machine.tags[tags.ATTEMPT])


@dataclass
class World:
    """Everything that a rule may touch."""

    job_hours: float = 2.0
    weather: str = "fair"
    attendant_dead: bool = False
    armed: dict[str, list[Mishap]] = field(default_factory=dict)
    """Function to what befalls its next invocation."""
    nodes: dict[str, Node] = field(default_factory=dict)
    surprises: list[str] = field(default_factory=list)
    """Errors that no function may end with."""
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.aws = deployed()
        self.ec2 = home(self.aws)
        self.functions = Functions(self.aws)
        self.job = admitted(self.aws, replace(JOB, max_hours=self.job_hours))
        self.execution = Execution(self.job, self.aws, self.invoke)
        self.strangers = [self._stranger(marks) for marks in _foreign_tags()]
        self._chance = random.Random(0)
        self._installed = ExitStack()
        self._installed.enter_context(self.functions.installed())
        self.aws.events.weather = self._delays
        self.functions.wake(self._wake)
        self._beat()
        self.execution.start()

    def close(self) -> None:
        self._installed.close()

    def invoke(self, name: str, event: dict[str, object]) -> Outcome:
        """An invocation, with what was armed for the next one of this function."""
        outcome = self.functions.invoke(name, event, self.armed.pop(name, []))
        problem = outcome.problem
        if problem is not None and not isinstance(problem, EXPECTED) and "looks failed" not in outcome.cause:
            self.surprises.append(f"{name}: {outcome.error}: {outcome.cause}")
        return outcome

    def launch(self, attempt: int) -> Outcome:
        return self.invoke("launcher", {"job": self.job.id, "attempt": attempt})

    def terminate(self, attempt: int) -> Outcome:
        problem = {"error": "NodeLost", "cause": "said the test"}
        return self.invoke("terminator", {"job": self.job.id, "attempt": attempt, "problem": problem})

    def tick(self) -> Outcome:
        return self.invoke("attendant", self.aws.events.event("aws.events", "Scheduled Event", {}))

    def ours(self) -> list[Machine]:
        """Machines of the job that run, whether or not EC2 shows them."""
        return [machine for machine in self.ec2.running() if machine not in self.strangers]

    def living(self) -> list[Node]:
        self._meet()
        return [node for node in self.nodes.values() if node.machine.runs(self.aws.clock.now)]

    def report(self, node: Node) -> None:
        """The node's report; its last one is urgent too, as the agent sends it."""
        node.sequence += 1
        report = NodeReport(
            job=self.job.id,
            attempt=node.attempt,
            rank=node.machine.index,
            instance=node.machine.id,
            phase=node.phase,
            sent_at=self.aws.clock.now,
            sequence=node.sequence,
            progress=Progress(step=node.sequence) if node.phase is Phase.TRAINING else None,
            exit=node.exit,
        )
        prefix = keys.JobPrefix(self.job.id)
        self.aws.s3.write(self.job.home_bucket, prefix.report(node.attempt, node.machine.index), encode(report))
        if node.exit is not None:
            self.aws.s3.write(self.job.home_bucket, prefix.urgent(node.attempt, node.machine.index), encode(report))

    def leave(self, node: Node, exit_: Exit) -> None:
        """The node's work ends. It does not power itself off here: Terminate has to do without."""
        if node.exit is None and not node.silent:
            node.exit, node.phase = exit_, Phase.ENDED
            self.report(node)

    def heal(self) -> None:
        """Nothing goes wrong any more but what waits for a function already."""
        self.weather, self.attendant_dead = "fair", False
        self.aws.faults.waiting.clear()
        self.ec2.capacity.clear()
        self.ec2.vcpu_quota, self.ec2.lag_s, self.ec2.invisible_s = None, 0.5, 1.0

    def run(self, seconds: float) -> None:
        self.aws.clock.run(seconds)

    def _wake(self, event: Event) -> None:
        self.events.append(event)
        if not self.attendant_dead:
            self.invoke("attendant", event)

    def _delays(self, event: Event) -> Iterable[float]:
        match self.weather:
            case "lost":
                return ()
            case "late":
                return (self._chance.uniform(10, 180),)
            case "doubled":
                return (1.0, self._chance.uniform(1, 120))
        return fair(event)

    def _beat(self) -> None:
        """Every minute, what healthy nodes do by themselves: boot, report, obey an order."""
        self.aws.clock.at(self.aws.clock.now + BEAT_S, self._beat)
        for node in self.living():
            old_enough = self.aws.clock.now >= node.machine.launched_at + BOOT_S
            if node.silent or node.exit is not None or not old_enough:
                continue
            order = self.aws.s3.read(self.job.home_bucket, keys.JobPrefix(self.job.id).order(node.attempt))
            if order is not None:
                error = json.loads(order)["error"]
                self.leave(node, Exit(code=143, error=error, ordered=True))
                continue
            named = tags.MASTER_ADDRESS in node.machine.tags
            node.phase = Phase.TRAINING if named else Phase.WAITING
            self.report(node)

    def _meet(self) -> None:
        for machine in self.ours():
            self.nodes.setdefault(machine.id, Node(machine))

    def _stranger(self, marks: dict[str, str]) -> Machine:
        """An instance that is none of this job's, looking as much like one as it can."""
        request = {"ImageId": "ami-1", "InstanceType": "g5.xlarge", "NetworkInterfaces": [{"SubnetId": "subnet-a"}]}
        now = self.aws.clock.now
        machine = Machine(
            id=self.ec2.name("i"),
            zone="eu-central-1a",
            request=request,
            index=0,
            address="10.9.9.9",
            launched_at=now - 7200,
            visible_at=0.0,
            running_at=0.0,
            reservation=self.ec2.name("r"),
            tags=marks,
        )
        self.ec2.machines[machine.id] = machine
        return machine


def _foreign_tags() -> tuple[dict[str, str], ...]:
    ours = {tags.DEPLOYMENT: JOB.deployment, tags.JOB: JOB.id, tags.ATTEMPT: "1"}
    return (
        {},
        {tags.NAME: f"{JOB.id}/1"},
        ours | {tags.DEPLOYMENT: "other"},
        ours | {tags.JOB: f"{JOB.id}0"},
        {tags.JOB: JOB.id, tags.ATTEMPT: "1"},
    )
