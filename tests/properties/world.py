"""A deployed yard in which anything may happen: an execution, its nodes, strangers, and a weather of events."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from unittest import mock

from botocore.exceptions import BotoCoreError, ClientError

import attendant.passes
from attendant.passes import Overdue
from contract import errors, items, tags
from contract.orders import Order
from contract.reports import Exit, NodeReport, Phase, Progress
from localaws.model import Refused
from localaws.services.dynamodb_mapping import Failed, Record
from localaws.services.dynamodb_state import Knobs
from localaws.services.ec2_instance import Machine
from tests.builders import JOB, NODE_ROLE, PLACE, rung
from tests.fakes.aws import Aws
from tests.fakes.ec2 import FakeEc2
from tests.fakes.events import Event, fair
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.functions import Functions, Outcome
from tests.fakes.state import report as tell
from tests.fakes.state import stored, stored_item
from tests.fakes.yard import ABROAD, admitted, deployed, home
from tests.properties.execution import Answered, Execution

BEAT_S = 60.0
BOOT_S = 45.0
AGAIN_S = 2.0
"""After which an agent sends a report again that did not arrive."""
EARLY_S = 0.9
"""By how much every second node dates its reports early."""


def rude() -> Knobs:
    """How the table answers, usually."""
    return Knobs(throttled=0.03, short_pages=0.4, unprocessed=0.3)


EXPECTED: dict[str, tuple[type[Exception], ...]] = {
    "launcher": (errors.JobError, ClientError, BotoCoreError),
    "attendant": (errors.JobError, ClientError, BotoCoreError),
    "artifact_check": (errors.SyncIncomplete, ClientError, BotoCoreError),
    "terminator": (errors.StillRunning,),
}
"""What a function may end with, besides being killed. The attendant puts several of them into one RuntimeError."""
TAKEN_OVER = "since a moment ago"
"""What a launcher says that lost the race for its own walk."""
LADDER = (rung(), rung("eu-central-1b"), rung("eu-west-1a", region=ABROAD.region))


def outage(region: str, kind: Kind) -> Mishap:
    """EC2 of the region answers nobody."""
    return Mishap("ec2:*", times=math.inf, region=region, fault=kind)


@dataclass
class Node:
    """The agent on a machine, as far as anybody hears of it."""

    machine: Machine
    phase: Phase = Phase.PREPARING
    sequence: int = 0
    silent: bool = False
    exit: Exit | None = None
    trains_since: float = math.inf
    skew_s: float = 0.0
    """How far its clock is ahead."""
    order: Order | None = None
    """That it asks for."""

    @property
    def job(self) -> str:
        return self.machine.tags[tags.JOB]

    @property
    def rank(self) -> int:
        return self.machine.index + int(self.machine.tags.get(tags.FIRST_RANK, "0"))

    @property
    def attempt(self) -> int:
        return int(self.machine.tags[tags.ATTEMPT])


def send(aws: Aws, node: Node, *, urgent: bool = False, **more: object) -> None:
    """The node's report, with `more` fields; its last one is urgent, as the agent sends it. One that the table refuses is sent again
    until a newer one is sent."""
    node.sequence += 1
    wrote_at = aws.clock.now - EARLY_S * (node.machine.index % 2)
    report = NodeReport(
        job=node.job,
        attempt=node.attempt,
        rank=node.rank,
        instance=node.machine.id,
        phase=node.phase,
        sent_at=aws.clock.now + node.skew_s,
        sequence=node.sequence,
        progress=Progress(step=node.sequence) if node.phase is Phase.TRAINING else None,
        exit=node.exit,
        order=node.order,
        timeline={"started": aws.clock.now + node.skew_s} if node.phase in {Phase.TRAINING, Phase.ENDED} else {},
    )
    report = replace(report, **more)  # type: ignore[arg-type]

    def again() -> None:
        if node.sequence != report.sequence or not node.machine.runs(aws.clock.now):
            return
        try:
            tell(aws, report, urgent=urgent or report.exit is not None, at=wrote_at)
        except Refused:
            aws.clock.at(aws.clock.now + AGAIN_S, again)

    again()


@dataclass
class World:
    """Everything that a rule may touch."""

    abroad_first: bool = False
    """The ladder begins in the other region."""
    job_hours: float = 2.0
    weather: str = "fair"
    attendant_dead: bool = False
    armed: dict[str, list[list[Mishap]]] = field(default_factory=dict)
    """Function to what befalls its next invocations, one after the other."""
    doomed: dict[str, tuple[float, int]] = field(default_factory=dict)
    """Function to the time until which every invocation is killed, and before which of its calls."""
    outages: dict[str, tuple[float, Kind]] = field(default_factory=dict)
    """Region to the time until which EC2 does not answer there, and how it does not."""
    protected: dict[str, float] = field(default_factory=dict)
    """Ids of instances that a person protects, and since when."""
    nodes: dict[str, Node] = field(default_factory=dict)
    troubled: set[str] = field(default_factory=set)
    """Functions that did not get through, were killed, or met a call that failed."""
    scarce: bool = False
    """EC2 had to refuse a launch at some moment."""
    surprises: list[str] = field(default_factory=list)
    """Errors that no function may end with."""
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.aws = deployed(places=(PLACE, ABROAD))
        self.aws.table.knobs, self.aws.table.weather = rude(), self._stream_delays
        self.ec2s = list(self.aws.ec2.values())
        self.functions = Functions(self.aws)
        ladder = LADDER[::-1] if self.abroad_first else LADDER
        places = {place.region: place for place in (PLACE, ABROAD)}
        self.job = admitted(self.aws, replace(JOB, max_hours=self.job_hours, ladder=ladder, places=places))
        self.execution = Execution(self.job.id, self.aws, self._answer, self.job.timing, admitted=self.job)
        self.execution.judged = self._judged
        self._launches = 0
        self.strangers = [self._stranger(home(self.aws), marks) for marks in _foreign_tags()]
        self._chance = random.Random(0)
        self._installed = ExitStack()
        self._installed.enter_context(self.functions.installed())
        self._installed.enter_context(mock.patch.object(attendant.passes, "SLICE", 1))
        self.aws.events.weather = self._delays
        self.functions.wake(self._wake)
        self._beat()
        self.execution.start()

    def close(self) -> None:
        self._installed.close()

    def invoke(self, name: str, event: dict[str, object]) -> Outcome:
        """An invocation, with all that befalls it."""
        now, waiting = self.aws.clock.now, self.armed.get(name, [])
        mishaps = waiting.pop(0) if waiting else []
        until, nth = self.doomed.get(name, (0.0, 0))
        if now < until:
            mishaps = [*mishaps, Mishap("*", nth, death=Death.BEFORE)]
        out = [outage(region, kind) for region, (until, kind) in self.outages.items() if now < until]
        mishaps = [*mishaps, *out]
        to_end = self._to_end(int(str(event["attempt"])), mishaps) if name == "terminator" else []
        self._launches += name == "launcher"
        before = self._launches
        outcome = self.functions.invoke(name, event, mishaps)
        self._judge(name, outcome, troubled=bool(mishaps))
        if left := [one.id for one in to_end if one.runs(self.aws.clock.now)]:
            self.surprises.append(f"{name} left {left} to run, and nothing kept it from ending them: {outcome}")
        if TAKEN_OVER in outcome.cause and self._launches == before:
            self.surprises.append(f"{name} lost a race against itself")
        return outcome

    def _answer(self, name: str, event: dict[str, object], answered: Answered) -> None:
        answered(self.invoke(name, event))

    def _judged(self) -> None:
        problem = self.execution.problem
        if not self.happened(problem[0] if problem else ""):
            told = problem or "success"
            self.surprises.append(f"attempt {self.execution.attempt} ends as {told}, which nothing in the world caused")

    def happened(self, error: str) -> bool:
        """Whether the world gave the attempt at hand a cause for this end (empty: success); so much does the oracle of the spine know:

        1. Success: every node of one launch told an exit with 0. SyncIncomplete never: nobody commits anything here.
        2. TrainingFailed: a node of the attempt told an exit with another code.
        3. NodeLost: an instance of the attempt was taken away, or nobody heard of it for as long as is allowed, or launches of the
           attempt failed halfway. Stalled: nodes live and wait for an address that a launcher in trouble did not give them.
        4. DeadlineReached: the time to stop was there.
        5. CapacityUnavailable and QuotaExceeded: EC2 refused a launch of the attempt.
        6. InvalidRequest: a call of the launcher was denied.
        7. Lambda's and AWS's own errors: a function did not get through, or was killed, or a call of it failed.
        """
        attempt, now = self.execution.attempt, self.aws.clock.now
        machines = [one for one in self.every() if one not in self.strangers and one.tags[tags.ATTEMPT] == str(attempt)]
        nodes = [node for machine in machines if (node := self.nodes.get(machine.id))]
        ends = [node.exit for node in nodes if node.exit is not None]
        match error:
            case "":
                well = [node.machine.reservation for node in nodes if node.exit == Exit(code=0)]
                return any(well.count(launch) == self.job.nodes for launch in well)
            case "TrainingFailed":
                return any(end.code != 0 and not end.ordered for end in ends)
            case "NodeLost":
                gone = any(not machine.runs(now) for machine in machines)
                return gone or self._unheard(machines) or "launcher" in self.troubled
            case "Stalled":
                told = any(end.code == 0 for end in ends)
                return told or "launcher" in self.troubled
            case "DeadlineReached":
                return now >= self.job.stop_at
            case "CapacityUnavailable" | "QuotaExceeded":
                return self.scarce
            case "InvalidRequest":
                return "launcher" in self.troubled
            case "SyncIncomplete":
                return False
        return bool(self.troubled)

    def _unheard(self, machines: list[Machine]) -> bool:
        """The table has no report of a node, or none that is new; whole seconds are not worth a dispute."""
        allowed_s = self.job.timing.silence_s - 2 * BEAT_S / 60
        for machine in machines:
            found = stored_item(self.aws, items.node_report(NODE_ROLE, machine.id))
            heard_at = float(found[items.WRITTEN_AT]["N"]) if found else machine.launched_at
            if self.aws.clock.now - heard_at >= allowed_s:
                return True
        return False

    def _judge(self, name: str, outcome: Outcome, *, troubled: bool) -> None:
        """`troubled`: calls of the invocation took their time, so that its looks may have come late, as it says by its error."""
        problem = outcome.problem
        if troubled and outcome.error == Overdue.__name__:
            return
        if problem is not None and not isinstance(problem, EXPECTED[name]) and "looks failed" not in outcome.cause:
            self.surprises.append(f"{name}: {outcome.error}: {outcome.cause}")

    def _to_end(self, attempt: int, mishaps: Collection[Mishap]) -> list[Machine]:
        """What a Terminate of now has to end by itself: all that those regions show which nothing befalls."""
        troubled = {mishap.region for mishap in mishaps}
        if "" in troubled:
            return []
        well = [ec2 for ec2 in self.ec2s if ec2.region not in troubled]
        shown = [machine for ec2 in well for machine in ec2.running() if ec2.sees(machine)]
        ours = [machine for machine in shown if machine not in self.strangers and machine.id not in self.protected]
        return [machine for machine in ours if int(machine.tags[tags.ATTEMPT]) <= attempt]

    def arm(self, function: str, mishap: Mishap, *, after: int = 0) -> None:
        """`mishap` befalls the function's next invocation, or the one that many later."""
        waiting = self.armed.setdefault(function, [])
        waiting += [[] for _ in range(after + 1 - len(waiting))]
        waiting[after].append(mishap)
        self.troubled.add(function)

    def launch(self, attempt: int) -> Outcome:
        return self.invoke("launcher", {"job": self.job.id, "attempt": attempt})

    def terminate(self, attempt: int) -> Outcome:
        problem = {"error": "NodeLost", "cause": "said the test"}
        return self.invoke("terminator", {"job": self.job.id, "attempt": attempt, "problem": problem})

    def tick(self) -> Outcome:
        return self.invoke("attendant", self.aws.events.event("aws.events", "Scheduled Event", {}))

    def ours(self) -> list[Machine]:
        """Machines of the job that run, whether or not EC2 shows them, but for those that a person keeps."""
        running = [machine for ec2 in self.ec2s for machine in ec2.running()]
        return [machine for machine in running if machine not in self.strangers and machine.id not in self.protected]

    def every(self) -> list[Machine]:
        """Whatever was launched, and the strangers."""
        return [machine for ec2 in self.ec2s for machine in ec2.machines.values()]

    def break_down(self, machine: Machine) -> None:
        """Its host fails."""
        ec2 = next(ec2 for ec2 in self.ec2s if machine.id in ec2.machines)
        ec2.end(machine, "Server.InternalError", "host failed")

    def protect(self, machine: Machine) -> None:
        """A person wants to keep it."""
        machine.tags[tags.PROTECTED] = "ada looks at it"
        self.protected[machine.id] = self.aws.clock.now

    def living(self) -> list[Node]:
        self._meet()
        return [node for node in self.nodes.values() if node.machine.runs(self.aws.clock.now)]

    def report(self, node: Node) -> None:
        send(self.aws, node)

    def leave(self, node: Node, exit_: Exit) -> None:
        """The node's work ends. It does not power itself off here: Terminate has to do without."""
        if node.exit is None and not node.silent:
            node.exit, node.phase = exit_, Phase.ENDED
            self.report(node)

    def heal(self) -> None:
        """Nothing goes wrong any more but what waits for a function already."""
        self.weather, self.attendant_dead = "fair", False
        self.doomed.clear()
        self.outages.clear()
        self.execution.throttled.clear()
        for ec2 in self.ec2s:
            ec2.capacity.clear()
            ec2.vcpu_quota, ec2.lag_s, ec2.invisible_s = None, 0.5, 1.0

    def run(self, seconds: float) -> None:
        self.aws.clock.run(seconds)

    def _wake(self, event: Event) -> None:
        """The table's stream sees whether the function failed, and brings its records again; a message of the queue is lost here."""
        self.events.append(event)
        failed = self.attendant_dead or bool(self.invoke("attendant", event).error)
        if failed and "dynamodb" in event.get("Records", [{}])[0]:
            raise Failed("the attendant failed")

    def _delays(self, event: Event) -> Iterable[float]:
        match self.weather:
            case "lost":
                return ()
            case "late":
                return (self._chance.uniform(10, 180),)
            case "doubled":
                return (1.0, self._chance.uniform(1, 120))
        return fair(event)

    def _stream_delays(self, _: Record) -> Iterable[float]:
        """A stream loses nothing; what a dead attendant does not take is given up."""
        match self.weather:
            case "late":
                return (self._chance.uniform(10, 180),)
            case "doubled":
                return (1.0, self._chance.uniform(1, 120))
        return (self._chance.uniform(0.2, 5.0),)

    def _beat(self) -> None:
        """Every minute, what healthy nodes do by themselves: boot, report, obey an order."""
        self.aws.clock.at(self.aws.clock.now + BEAT_S, self._beat)
        for node in self.living():
            old_enough = self.aws.clock.now >= node.machine.launched_at + BOOT_S
            if node.silent or node.exit is not None or not old_enough:
                continue
            order = stored(self.aws, items.node_order(NODE_ROLE, node.machine.id))
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

    def _stranger(self, ec2: FakeEc2, marks: dict[str, str]) -> Machine:
        """An instance that is none of this job's, looking as much like one as it can."""
        launched = self.aws.clock.now - 7200
        return ec2.put(marks, launched_at=launched, zone="eu-central-1a", visible_at=0.0, running_at=0.0)


def _foreign_tags() -> tuple[dict[str, str], ...]:
    ours = {tags.DEPLOYMENT: JOB.deployment, tags.JOB: JOB.id, tags.ATTEMPT: "1"}
    return (
        {},
        {tags.NAME: f"{JOB.id}/1"},
        ours | {tags.DEPLOYMENT: "other"},
        ours | {tags.JOB: f"{JOB.id}0"},
        {tags.JOB: JOB.id, tags.ATTEMPT: "1"},
    )
