"""One whole execution of two nodes on the virtual clock, from its request to its cleanup, that meets a fault and perhaps a trouble."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any
from unittest import mock

from contract.environments import VARIABLE_PREFIX
from contract.reports import Exit
from localaws.services.dynamodb_mapping import Failed
from localaws.services.dynamodb_state import Knobs
from tests.fakes.aws import READING
from tests.fakes.events import Event, Weather, fair
from tests.fakes.faults import Death, Faults, Kind, Mishap
from tests.fakes.reaping import PERIOD_S, Reaping
from tests.fakes.wire import Call
from tests.properties.jobs_oracle import Run
from tests.properties.jobs_world import TIMING, JobsWorld
from tests.properties.world import Node

LOOKUPS_FAIL_S = 150.0
TRAINS_S = 130.0
"""So long a training lasts that meets nothing."""
STEP_S, MOMENT_S = 10.0, 0.05
SHORT = ("Admit", "Launch", "Sync", "Terminate", "Pause")
"""States that pass within moments."""
SECOND_LOOK_S, QUIET_S = 120.0, 1800.0
LONGEST_S = 5 * 3600.0
HALF_WAY = {
    "admission": Mishap("s3:CopyObject", death=Death.AFTER),
    "launcher": Mishap("ec2:RunInstances", death=Death.AFTER),
    "attendant": Mishap("dynamodb:BatchGetItem", death=Death.AFTER),
    "artifact_check": Mishap("s3:PutObject", death=Death.BEFORE),
    "terminator": Mishap("ec2:TerminateInstances", death=Death.AFTER),
    "cleanup": Mishap("ec2:TerminateInstances", death=Death.AFTER),
}


class Trouble(str, Enum):
    """What AWS has in store beside a fault, from the moment on at which the fault strikes."""

    NONE = "alone"
    EVENTS = "events lost"
    """Every event of EventBridge; and the table's stream, which loses nothing, is hours late. The clocks go on."""
    LOOKUPS = "lookups fail"
    """No call that reads anything gets through, for minutes."""
    KILLED = "functions killed half way"
    """The next invocation of each function, between a call with an effect and its answer."""

    def __str__(self) -> str:
        return self.value


@dataclass
class LookupsFail(Faults):
    """Every call that only reads meets an error, but for those of a person's tools."""

    world: JobsWorld | None = None
    until: float = -math.inf

    def take(self, call: Call) -> Kind | None:
        assert self.world is not None
        if self.world.clock.now < self.until and call.operation.startswith(READING):
            return Kind.UNREACHABLE if call.service == "ec2" else Kind.ERROR
        return super().take(call)


class Played(JobsWorld):
    """A world in which only what a test names goes wrong, with its reaper."""

    def __init__(self) -> None:
        super().__init__(seed=1, timing=replace(TIMING, launch_patience_s=600.0))
        self.aws.paused = 0.0
        self.aws.table.knobs = Knobs()
        self.lookups = self.aws.faults = LookupsFail(world=self)
        self.dead_until = -math.inf
        """The attendant does nothing until then."""
        self.clock_late_s = 0.0
        """So much later the clock wakes the attendant."""
        self.trains_s = TRAINS_S
        self._events_lost = False
        self._reaping = Reaping(self.aws)
        self._installed.enter_context(mock.patch.dict(os.environ, self._reaper_environment()))
        self.aws.events.every(PERIOD_S, lambda _: self._reap())

    def _reaper_environment(self) -> dict[str, str]:
        """All functions read one environment here, and it has every duration."""
        return self._reaping.environment.write() | {f"{VARIABLE_PREFIX}TIMING": json.dumps(asdict(self.timing))}

    def _reap(self) -> None:
        """A pass of the reaper. It may begin while another function waits for AWS, which then did not make the reaper's calls."""
        before, self.watch.task.function = self.watch.task.function, ""
        with self._reaping.beside(), mock.patch.dict(os.environ, self._reaper_environment()):
            self._reaping.run()
        self.watch.task.function = before

    def wake(self, event: Event) -> None:
        late_s = self.clock_late_s if event.get("detail-type") == "Scheduled Event" else 0.0
        if self.clock.now < self.dead_until:
            if "dynamodb" in event.get("Records", [{}])[0]:
                raise Failed("the attendant is dead")
            return
        self.clock.at(self.clock.now + late_s, lambda: super(Played, self).wake(event))

    def trouble(self, trouble: Trouble, run: Run) -> None:
        match trouble:
            case Trouble.EVENTS:
                self._events_lost = True
                self.aws.events.weather, self.aws.table.weather = nothing, hours_late
            case Trouble.LOOKUPS:
                self.lookups.until = self.clock.now + LOOKUPS_FAIL_S
            case Trouble.KILLED:
                for function, mishap in HALF_WAY.items():
                    armed = self.armed if function in {"attendant", "cleanup"} else run.armed
                    armed.setdefault(function, Mishap(mishap.name, death=mishap.death))

    def tell(self, weather: Weather) -> None:
        """So EventBridge delivers from now on, unless it loses everything."""
        if not self._events_lost:
            self.aws.events.weather = weather

    def nodes(self, run: Run) -> list[Node]:
        """Those of the attempt at hand, of which somebody has heard that they train."""
        return [node for node in self.living(run) if node.trains_since < math.inf]

    def play(self, run: Run, state: str) -> None:
        """Until the execution is in that state; in Train, until both nodes train. To a Pause leads a node that breaks."""
        until = self.clock.now + LONGEST_S
        while run.execution.state != state or (state == "Train" and len(self.nodes(run)) < run.nodes):
            assert not run.execution.over, f"{run.execution.state} for {run.execution.problem} before {state}"
            assert self.clock.now < until, f"still in {run.execution.state}, and never in {state}"
            if state == "Pause":
                for node in self.nodes(run)[:1]:
                    self.break_down(node)
            elif state in SHORT:
                self._go_on(run)
            self.run(MOMENT_S if state in SHORT and len(self.nodes(run)) < run.nodes else STEP_S)

    def play_until_attempt(self, run: Run, attempt: int) -> None:
        until = self.clock.now + LONGEST_S
        while run.execution.attempt < attempt:
            assert self.clock.now < until, f"still in attempt {run.execution.attempt}"
            self.run(STEP_S)

    def play_to_the_end(self, run: Run) -> None:
        until = self.clock.now + LONGEST_S
        while not run.execution.over:
            assert self.clock.now < until, f"still in {run.execution.state}"
            self._go_on(run)
            self.run(STEP_S)

    def run_until_quiet(self) -> None:
        """Until the cleanup, or at last the reaper, has ended what the execution left, and a second look would have come."""
        until = self.clock.now + QUIET_S
        self.run(SECOND_LOOK_S)
        while self.running() and self.clock.now < until:
            self.run(STEP_S)

    def running(self) -> list[str]:
        return [one.id for ec2 in self.aws.ec2.values() for one in ec2.running()]

    def _go_on(self, run: Run) -> None:
        """Nodes train together: their work ends once each of them has trained for long enough."""
        nodes = self.nodes(run)
        ready = [node for node in nodes if self.clock.now >= node.trains_since + self.trains_s and not node.silent]
        if len(ready) == run.nodes and run.execution.state == "Train":
            for node in ready:
                self.leave(node, Exit(code=0))


def nothing(_: Any) -> Iterable[float]:
    """Nothing of it is ever delivered."""
    return ()


def hours_late(_: Any) -> Iterable[float]:
    return (7200.0,)


def doubled(event: Event) -> Iterable[float]:
    (first,) = fair(event)
    return (first, first + 45.0)


def late(_: Event) -> Iterable[float]:
    return (400.0,)
