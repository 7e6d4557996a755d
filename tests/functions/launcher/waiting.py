"""A deployment whose EC2 has no capacity, and executions that wait for it, on the virtual clock."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from contract import items
from contract.codec import decode
from contract.groups import TakenGroups
from contract.intents import Intent
from contract.jobs import Job
from contract.keys import JobPrefix
from contract.places import Place
from contract.timing import Timing
from contract.waits import CapacityWait
from localaws.services.ec2_instance import Machine
from tests.builders import JOB, NOW, PLACE
from tests.fakes.aws import Aws
from tests.fakes.events import Event
from tests.fakes.executions import Execution as Known
from tests.fakes.faults import Mishap
from tests.fakes.functions import CLOCK_S, Functions, Outcome
from tests.fakes.state import kept, stored
from tests.fakes.wire import Call
from tests.fakes.yard import admitted, deployed, home
from tests.properties.execution import Answered, Execution

HOUR, DAY = 3600.0, 86400.0
TWO_WEEKS = 14 * DAY
PATIENCE_S = 300.0
"""The patience of Launch here; the usual half an hour only adds walks."""
TIMING = replace(JOB.timing, launch_patience_s=PATIENCE_S)
AWAY_S = PATIENCE_S + 120
"""After this long the ladder is used up."""
TRY_S = 1.5 * JOB.timing.wait_longest_s + 300
"""Within this time there is a next try, however long the pauses have grown."""
STATUS = {"Done": "SUCCEEDED", "Failed": "FAILED", "Aborted": "ABORTED"}


@dataclass
class WaitingYard:
    """One deployment; `executions` by job."""

    aws: Aws
    functions: Functions
    executions: dict[str, Execution] = field(default_factory=dict)
    known: dict[str, Known] = field(default_factory=dict)
    armed: dict[str, list[Mishap]] = field(default_factory=dict)
    """Function to what befalls its next invocation."""
    launched_at: list[float] = field(default_factory=list)
    """When RunInstances was called."""

    def start(self, name: str = JOB.id, *, hours: float = 336.0, timing: Timing = TIMING, **changes: Any) -> Execution:
        """An execution that begins with its launch; `hours` is its max_wait_hours."""
        arn = JOB.execution.replace(JOB.id, name)
        job = admitted(self.aws, replace(JOB, id=name, execution=arn, max_wait_hours=hours, timing=timing, **changes))
        execution = Execution(name, self.aws, self._invoke, job.timing, admitted=job)
        self.known[name], self.executions[name] = self.aws.states.executions.begin(name), execution
        execution.ended = lambda: self._ended(name)
        execution.start()
        return execution

    def abort(self, name: str = JOB.id) -> None:
        """A person presses Stop."""
        self.executions[name].stop()

    def _ended(self, name: str) -> None:
        execution = self.executions[name]
        error, cause = execution.problem or (None, None)
        self.aws.states.executions.end(self.known[name], STATUS[execution.state], error, cause)

    def _invoke(self, name: str, event: dict[str, object], answered: Answered) -> None:
        answered(self.invoke(name, event))

    def invoke(self, name: str, event: dict[str, Any]) -> Outcome:
        return self.functions.invoke(name, event, self.armed.pop(name, []))

    def tick(self) -> Outcome:
        """One of the clock, now."""
        return self.invoke("launcher", self.aws.events.event("aws.events", "Scheduled Event", {}))

    def ticked(self, event: Event) -> None:
        self.invoke("launcher", event)

    def run(self, seconds: float) -> None:
        self.aws.clock.run(seconds)

    def before_a_try(self) -> None:
        """Time passes until the next tick is the one that tries for the job that waits."""
        while True:
            (wait,) = self.waits()
            ticks = (self.aws.clock.now - NOW) // CLOCK_S + 1
            tick = NOW + ticks * CLOCK_S
            if tick >= wait.next_try_at:
                return
            self.run(tick + 0.5 - self.aws.clock.now)

    def fill(self) -> None:
        """No zone of any region has capacity, in no market."""
        for ec2 in self.aws.ec2.values():
            none = {(rung.instance_type, zone): 0 for rung in JOB.ladder for zone in ec2.catalogue.zones}
            ec2.capacity |= none
            ec2.spot_capacity |= none

    def free(self, region: str = PLACE.region) -> None:
        """The zones of a region have capacity again, in both markets."""
        self.aws.ec2[region].capacity.clear()
        self.aws.ec2[region].spot_capacity.clear()

    def running(self) -> list[Machine]:
        return home(self.aws).running()

    def waits(self) -> list[CapacityWait]:
        """The jobs that wait."""
        found = [one for one in kept(self.aws) if one[items.PARTITION]["S"] == items.CAPACITY]
        return [decode(CapacityWait, items.unpacked(one)) for one in found]

    def walks(self, name: str = JOB.id) -> list[Intent]:
        """The walks that the table keeps of a job."""
        found = [one for one in kept(self.aws) if one[items.PARTITION]["S"] == items.launches(name)]
        return [decode(Intent, items.unpacked(one)) for one in found]

    def document(self, name: str = JOB.id) -> dict[str, Any]:
        """What people read."""
        body = self.aws.s3.read(JOB.home_bucket, JobPrefix(name).wait)
        assert body is not None
        found: dict[str, Any] = json.loads(body)
        return found

    def taken(self) -> set[str]:
        """Jobs that have a security group."""
        found = stored(self.aws, items.groups(PLACE.region))
        return {one.job for one in decode(TakenGroups, found or b"{}").taken}

    def job(self, name: str = JOB.id) -> Job:
        return decode(Job, stored(self.aws, items.job(name)) or b"")

    def calls(self, name: str) -> list[Call]:
        return [call for call in self.aws.calls if call.name == name]


@contextmanager
def waiting(tick_s: float = CLOCK_S, *, places: Sequence[Place] = (PLACE,)) -> Iterator[WaitingYard]:
    """A deployment without capacity, whose clock ticks every `tick_s`."""
    aws = deployed(places=tuple(places))
    made = WaitingYard(aws, Functions(aws))
    made.fill()
    made.functions.clean_up()
    aws.events.every(tick_s, made.ticked)
    serve, clock = home(aws).answer, aws.clock

    def answer(operation: str, params: Any) -> dict[str, Any]:
        if operation == "RunInstances":
            made.launched_at.append(clock.now)
        return serve(operation, params)

    home(aws).answer = answer  # type: ignore[method-assign]
    with made.functions.installed():
        yield made
