"""Many jobs that wait for capacity, with new jobs beside them, under EC2's own throttling: a deployment whose clock overlaps with itself,
and whose invocations are killed now and then, each in a process of its own on one virtual clock."""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from contract import items, keys, tags
from contract.codec import compact, decode, encode
from contract.groups import TakenGroups
from contract.intents import LaunchAnswer, LaunchOutcome, Step
from contract.jobs import Job
from contract.waits import CapacityWait
from localaws.model import Refused
from tests.builders import INTENT, JOB, NOW, PLACE, rung
from tests.fakes.aws import Aws
from tests.fakes.events import Event
from tests.fakes.faults import Death, Mishap
from tests.fakes.functions import CLOCK_S, Functions
from tests.fakes.state import kept, store, stored
from tests.fakes.threads import Process, SharedClock
from tests.fakes.wire import Call
from tests.fakes.yard import ABROAD, admitted, deployed
from tests.load.buckets import Throttle
from tests.properties.execution import Answered, Execution
from tests.properties.retrying import WAIT

HOUR, TWO_WEEKS = 3600.0, 14 * 86400.0
WAITED_S = 1800.0
"""How long the jobs have waited when it begins: Launch's patience."""
LADDER = (rung(), rung("eu-central-1b"), rung("eu-west-1a", region=ABROAD.region))
PLACES = {place.region: place for place in (PLACE, ABROAD)}
WAITING_JSON = re.compile(keys.JobPrefix("([^/]+)").wait)
TICKS = (1, 1, 1, 2, 0)
"""How often the clock wakes the launcher where it should once: sometimes twice at once, sometimes not at all."""
KILLED = 0.1
"""The share of invocations that die at one of their calls."""
LATE_S = 20.0
"""By how much a tick may come late."""


@dataclass
class WaitingJobs:
    """One deployment with `many` jobs of `nodes` nodes that have just used up Launch's patience, all of which are due at once."""

    many: int
    nodes: int
    seed: int = 0
    aws: Aws = field(init=False)
    executions: dict[str, Execution] = field(default_factory=dict)
    """Of the new jobs."""
    tried: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """When people were told of a try, by job."""
    calls: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """When a waiting job's launch was asked for, by region."""
    launched: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Reservations by job: of EC2's answers, whether or not anybody read them."""
    problems: list[str] = field(default_factory=list)
    most_at_once: int = 0
    """Invocations of the clock that were alive together."""
    killed: int = 0

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self.clock = SharedClock(NOW)
        self.aws = deployed(fake=Aws(now=NOW, clock=self.clock), places=PLACES.values())
        self.throttles = {region: Throttle(NOW) for region in PLACES}
        self.functions = Functions(self.aws)
        self._processes: set[Process] = set()
        self._ticking = 0
        for region in PLACES:
            self._throttle(region)
        self._watch_tries()
        self.free(0)
        for number in range(self.many):
            self._waits(f"job-{number:04d}")

    @contextmanager
    def installed(self) -> Iterator[None]:
        with self.functions.installed():
            self.aws.events.every(CLOCK_S, self._tick)
            try:
                yield
            finally:
                for process in list(self._processes):
                    process.kill()

    def free(self, instances: int) -> None:
        """So many can run on the second rung of the ladder, and none on any other."""
        for one in LADDER:
            self.aws.ec2[one.region].capacity[one.instance_type, one.zone] = 0
        self.aws.ec2[LADDER[1].region].capacity[LADDER[1].instance_type, LADDER[1].zone] = instances

    def arrive(self, name: str) -> None:
        """A new job, from its launch on."""
        job = self._job(name)
        execution = Execution(name, self.aws, self._invoke, job.timing, admitted=job)
        self.executions[name] = execution
        execution.start()

    def arrivals(self, every_s: float, until: float, number: int = 0) -> None:
        """A new job now, and from now on every so often."""
        if self.clock.now < until:
            self.arrive(f"new-{number:03d}")
            self.clock.at(self.clock.now + every_s, lambda: self.arrivals(every_s, until, number + 1))

    def waits(self) -> list[CapacityWait]:
        found = [one for one in kept(self.aws) if one[items.PARTITION]["S"] == items.CAPACITY]
        return [decode(CapacityWait, items.unpacked(one)) for one in found]

    def longest_gap_s(self) -> float:
        """The longest time in which a waiting job was not tried for, by calls of its own or by what others had just found; since the begin,
        and until now where it still waits."""
        gaps = []
        for number in range(self.many):
            name = f"job-{number:04d}"
            times = [NOW, *self.tried[name], *([] if name in self.launched else [self.clock.now])]
            gaps.append(max((b - a for a, b in pairwise(times)), default=0.0))
        return max(gaps)

    def twice(self) -> list[str]:
        """Jobs that were launched more than once."""
        return [name for name, launches in self.launched.items() if len(launches) > 1]

    def taken(self) -> set[str]:
        """Jobs that have a security group."""
        return holders(self.aws)

    # Jobs

    def _job(self, name: str) -> Job:
        arn = JOB.execution.replace(JOB.id, name)
        job = replace(JOB, id=name, execution=arn, nodes=self.nodes, ladder=LADDER, places=PLACES, max_wait_hours=336.0)
        return admitted(self.aws, job)

    def _waits(self, name: str) -> None:
        job = self._job(name)
        answer = LaunchAnswer(outcome=LaunchOutcome.NO_CAPACITY, at=NOW - 60, code="InsufficientInstanceCapacity")
        steps = tuple(Step(rung=one, request={"InstanceType": one.instance_type}, answer=answer) for one in LADDER)
        intent = replace(
            INTENT, job=name, steps=steps, started_at=NOW - WAITED_S, patience_until=NOW, held_until=0.0
        )  # fmt: skip
        store(self.aws, items.launch(name, 1, 1), encode(intent))
        token = self.aws.states.wait(heartbeat_s=job.timing.wait_heartbeat_s, timeout_s=TWO_WEEKS).token
        wait = CapacityWait(
            job=name, attempt=1, token=token, since=NOW - WAITED_S, until=NOW + TWO_WEEKS - WAITED_S, next_try_at=NOW
        )
        digest = hashlib.sha256(token.encode()).hexdigest()
        store(self.aws, items.awaited(name, 1, digest), compact(wait))

    # Calls and functions

    def _throttle(self, region: str) -> None:
        ec2, throttle = self.aws.ec2[region], self.throttles[region]
        serve = ec2.answer

        def answer(operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
            if operation != "RunInstances":
                return serve(operation, params)
            marks = {tag["Key"]: tag["Value"] for tag in params["TagSpecifications"][0]["Tags"]}
            name = marks[tags.JOB]
            execution = self.executions.get(name)
            if execution is None or execution.state == WAIT:
                self.calls[region].append(self.clock.now)
            if not throttle.allows(params["MinCount"], self.clock.now):
                raise Refused("RequestLimitExceeded", "Request limit exceeded.", 503)
            found = serve(operation, params)
            self.launched[name].add(found["ReservationId"])
            return found

        ec2.answer = answer  # type: ignore[method-assign]

    def _watch_tries(self) -> None:
        """Each try ends with a new waiting.json."""
        serve = self.aws.answer

        def answer(call: Call) -> dict[str, Any]:
            if call.name == "s3:PutObject" and (job := WAITING_JSON.fullmatch(call.params["Key"])):
                self.tried[job[1]].append(self.clock.now)
            return serve(call)

        self.aws.answer = answer  # type: ignore[method-assign]

    def _tick(self, event: Event) -> None:
        for _ in range(self._chance.choice(TICKS)):
            late_s = self._chance.uniform(0.0, LATE_S) if self._chance.random() < 0.2 else 0.0
            self.clock.at(self.clock.now + late_s, lambda: self._wake(event))

    def _wake(self, event: Event) -> None:
        self._ticking += 1
        self.most_at_once = max(self.most_at_once, self._ticking)
        self._start("launcher", event, lambda _: setattr(self, "_ticking", self._ticking - 1))

    def _invoke(self, name: str, event: dict[str, object], answered: Answered) -> None:
        if name == "launcher":
            self._start(name, event, answered)

    def _start(self, name: str, event: Mapping[str, Any], answered: Answered) -> None:
        mishaps = []
        if self._chance.random() < KILLED:
            self.killed += 1
            nth = int(math.exp(self._chance.uniform(0.0, 6.0)))
            mishaps = [Mishap("*", nth, death=self._chance.choice([*Death]))]

        def ended(process: Process) -> None:
            self._processes.discard(process)
            if process.problem is not None:
                self.problems.append(repr(process.problem))
                return
            if process.result.error and "looks failed" not in process.result.cause:
                self._note(process.result.error, process.result.cause)
            answered(process.result)

        process = Process(self.clock, lambda: self.functions.invoke(name, event, mishaps), ended)
        self._processes.add(process)
        process.start()

    def _note(self, error: str, cause: str) -> None:
        """What a launcher may say: it was killed, or what a job without capacity is told."""
        if error not in {"Sandbox.Timedout", "CapacityPending", "CapacityAwaited", "CapacityUnavailable"}:
            self.problems.append(f"{error}: {cause}")


def holders(aws: Aws) -> set[str]:
    """Jobs that have a security group."""
    found = [decode(TakenGroups, stored(aws, items.groups(region)) or b"{}") for region in PLACES]
    return {one.job for groups in found for one in groups.taken}
