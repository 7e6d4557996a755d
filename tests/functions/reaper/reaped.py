"""A deployment in two regions with one execution and its reaper, for tests of whole passes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from aws.facts import Belonging, Sort
from contract import items
from localaws.services.ec2_instance import Machine
from tests.builders import JOB, NOW, PLACE
from tests.fakes.aws import Aws
from tests.fakes.ec2 import FakeEc2
from tests.fakes.executions import Execution
from tests.fakes.faults import Kind
from tests.fakes.functions import PROFILE, Outcome
from tests.fakes.reaping import HOUR, Reaping, our_tags, put
from tests.fakes.state import stored
from tests.fakes.yard import ABROAD, deployed, home

PASSING = [Kind.THROTTLED, Kind.ERROR, Kind.LOST, Kind.UNREACHABLE, Kind.DENIED]
OURS = Belonging(
    id="i-1",
    sort=Sort.INSTANCE,
    region="eu-central-1",
    state="running",
    born_at=NOW - 2 * HOUR,
    deployment=JOB.deployment,
    profile=PROFILE,
    execution=JOB.execution,
    deadline=str(int(NOW + 5 * HOUR)),
    job=JOB.id,
)
"""An instance of our job, two hours old."""
WRITES = ("Put", "Delete", "Terminate", "Cancel", "Create", "Publish", "Stop", "Start", "Modify")


@dataclass
class Yard:
    """A deployment in two regions with one execution, and its reaper."""

    fake: Aws
    reaping: Reaping
    execution: Execution

    @property
    def now(self) -> float:
        return self.fake.clock.now

    @property
    def ec2(self) -> FakeEc2:
        return home(self.fake)

    def instance(
        self, marks: Mapping[str, str] | None = None, *, deadline: float = 10 * HOUR, age: float = 2 * HOUR
    ) -> Machine:
        """Of our execution, its deadline in so many seconds, with `marks` over its tags."""
        usual = our_tags(execution=self.execution.arn, deadline=self.now + deadline)
        return put(self.ec2, usual | dict(marks or {}), launched_at=self.now - age)

    def over(self, ago: float = HOUR, status: str = "ABORTED") -> None:
        self.fake.states.executions.end(self.execution, status)
        self.execution.ended_at = self.now - ago

    def run(self, times: int = 1) -> Outcome:
        """So many passes, five minutes apart; the last one's outcome."""
        outcome = self.reaping.run()
        for _ in range(times - 1):
            outcome = self.reaping.later()
        return outcome

    def run_beside(self) -> None:
        """A whole pass, in the middle of another one."""
        self.reaping.run()

    def calls(self, name: str) -> list[dict[str, Any]]:
        return [call.params for call in self.fake.calls if call.name == name]

    def written(self) -> list[str]:
        return [call.name for call in self.fake.calls if call.operation.startswith(WRITES)]

    def marks(self, region: str = PLACE.region) -> dict[str, Any]:
        body = stored(self.fake, items.marks(region))
        sections: dict[str, Any] = json.loads(body).get("sections", {}) if body else {}
        return sections


@contextmanager
def reaped(**settings: Any) -> Iterator[Yard]:
    """`settings` of the reaper's environment."""
    fake = deployed(places=(PLACE, ABROAD))
    reaping = Reaping(fake, **settings)
    with reaping.installed():
        yield Yard(fake, reaping, fake.states.executions.begin(JOB.id))


def abroad(yard: Yard, *, deadline: float = 10 * HOUR) -> Machine:
    """An instance of our execution in the region that is looked at last."""
    marks = our_tags(execution=yard.execution.arn, deadline=yard.now + deadline)
    return put(yard.fake.ec2[ABROAD.region], marks, launched_at=yard.now - 2 * HOUR)


def counted(yard: Yard, name: str) -> float:
    """What the last pass said of itself, whether or not it raised."""
    value: float = json.loads(yard.reaping.printed[-1])[name][0]
    return value
