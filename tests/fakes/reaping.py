"""The reaper as its stack deploys it, on the fake: its environment, its clock (which may be wrong), its five minutes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import botocore.endpoint
from aws_lambda_powertools.metrics.provider.cloudwatch_emf import cloudwatch

import aws.belongings
import aws.state
import aws.table
import reaper.handler
from aws import clients, prices
from aws.service_models import narrow
from contract import tags
from contract.environments import ReaperEnvironment
from contract.timing import Timing
from contract.timings import ReaperTiming
from localaws.services.ec2_instance import NEVER, Machine
from tests.builders import JOB, TOPIC
from tests.fakes.aws import Aws
from tests.fakes.clock import Clock
from tests.fakes.ec2 import FakeEc2
from tests.fakes.executions import GRID_MACHINE, MACHINE, SEARCH_MACHINE
from tests.fakes.faults import Mishap
from tests.fakes.functions import PROFILE, Outcome, invoked, quiet
from tests.fakes.state import TABLE

TIMEOUT_S = 300.0
PERIOD_S = 300.0
HOUR = 3600.0
ENVIRONMENT = ReaperEnvironment(
    deployment=JOB.deployment,
    table=TABLE,
    home_region=JOB.home_region,
    regions=(JOB.home_region,),
    instance_profile=PROFILE,
    machine=MACHINE,
    grid_machine=GRID_MACHINE,
    search_machine=SEARCH_MACHINE,
    topic=TOPIC,
    report_only=False,
    max_hours=100.0,
    max_share=0.2,
    max_least=5,
    timing=Timing().of(ReaperTiming),
)


@dataclass
class SkewedClock:
    """The function's own: stands in for the module `time`."""

    clock: Clock
    skew_s: float = 0.0

    def time(self) -> float:
        return self.clock.now + self.skew_s

    def sleep(self, seconds: float) -> None:
        self.clock.spend(seconds)


class Reaping:
    """Runs passes. `aws.topics`, `aws.calls` and the machines say what they did."""

    def __init__(self, fake: Aws, **settings: Any) -> None:
        self.aws, self.clock = fake, SkewedClock(fake.clock)
        self.environment = replace(ENVIRONMENT, regions=tuple(fake.ec2), **settings)
        self.passes = 0
        self.printed: list[str] = []
        """Lines of embedded metrics."""

    @contextmanager
    def installed(self) -> Iterator[None]:
        with self.aws.connected(), self.beside():
            yield

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Where the fake is connected already."""
        with ExitStack() as stack:
            stack.enter_context(mock.patch.dict(os.environ, self.environment.write()))
            for module in (aws.belongings, aws.state, aws.table, reaper.handler, botocore.endpoint):
                stack.enter_context(mock.patch.object(module, "time", self.clock))
            stack.enter_context(mock.patch.object(cloudwatch, "print", self.printed.append, create=True))
            stack.enter_context(mock.patch.object(narrow, "client", _whole))
            prices.forget()
            stack.enter_context(quiet("reaper"))
            yield

    def run(self, event: Mapping[str, Any] | None = None, mishaps: Sequence[Mishap] = ()) -> Outcome:
        """One invocation, for at most its function's time-out."""
        self.passes += 1
        return invoked(self.aws, reaper.handler.handler, event or {}, f"pass-{self.passes}", TIMEOUT_S, mishaps)

    def later(self, seconds: float = PERIOD_S) -> Outcome:
        """The next pass, a period after the last one."""
        self.aws.clock.run(seconds)
        return self.run()


def put(
    ec2: FakeEc2, marks: Mapping[str, str], *, launched_at: float, profile: str = PROFILE, **fields: Any
) -> Machine:
    """An instance that is there, however it came to be."""
    return ec2.put(marks, launched_at=launched_at, profile=profile, **fields)


def our_tags(*, execution: str, deadline: float | str, job: str = JOB.id) -> dict[str, str]:
    """As a launch sets them."""
    return {
        tags.DEPLOYMENT: JOB.deployment,
        tags.JOB: job,
        tags.ATTEMPT: "1",
        tags.EXECUTION: execution,
        tags.OWNER: "ada",
        tags.DEADLINE: deadline if isinstance(deadline, str) else str(int(deadline)),
    }


def alive(machine: Machine) -> bool:
    """Whether nobody has ended it."""
    return machine.ending_at == NEVER


def _whole(service: str, region: str) -> Any:
    """The whole client of the fake: the cut one has a session of its own, which no fake stands behind."""
    return clients.client(service, region, clients.BRISK)
