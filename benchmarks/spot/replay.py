"""One job over one trace: the synthesised Train machine, the real functions and the real agent's decisions on a virtual clock."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import agent.reports
from benchmarks.spot.assumed import Assumed, Chance, Loss
from benchmarks.spot.node import Node
from benchmarks.spot.traces import Stretch, Trace
from benchmarks.spot.training import Training
from contract import keys, tags
from contract.codec import decode
from contract.commits import CheckpointSet
from contract.jobs import Job
from localaws.services.ec2_spot import TAKEN
from tests.archives import packed
from tests.builders import ADMISSION, JOB, PLACE
from tests.fakes.events import Event
from tests.fakes.functions import CLOCK_S, Functions, Outcome
from tests.fakes.yard import admits, deployed, home
from tests.load.definition import Interpreted, synthesised
from tests.node.fakes import FakeS3
from tests.properties.retrying import WAIT

NAME, TYPE = "spot", "g5.xlarge"
LIMITS = replace(ADMISSION.limits, recoveries=3, max_hours=2000.0)
"""Of cdk.json, but for the hours: a trace lasts for more than two weeks."""
MOST_WAIT_H = 336
STEP_S = 300.0
AFTER_S = 7200.0
"""In which a job that has trained to the end of its trace has to end."""
QUIET_BEFORE_S, QUIET_AFTER_S = 300.0, 120.0
"""How long before the next trouble, and after the first step, everything happens as ever; what lies between is quiet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What became of one trace. Times are node-seconds."""

    paid_s: float
    """From the moment in which EC2 says that the instance runs to its end, which is what AWS bills."""
    progress_s: float
    """Of training whose steps are in the result."""
    lost_s: float
    """Of training whose steps are not."""
    before_s: float
    """From the same moment to the first step of all nodes."""
    paused_s: float
    """For which saves stopped the training."""
    after_s: float
    """From the last step to the end of the instance."""
    unused_s: float
    """Of attempts that never trained."""
    attempts: int
    status: str
    """Of the execution; empty where the trace ended before it did."""
    problem: str

    @property
    def share(self) -> float:
        """Of what is paid, what becomes progress; 0 where nothing is paid."""
        return self.progress_s / self.paid_s if self.paid_s else 0.0


class _Kept(FakeS3):
    """The bucket of bytes as nodes see it; functions see the same objects in theirs."""

    def __init__(self, replay: Replay) -> None:
        super().__init__()
        self._replay, self.now = replay, replay.aws.clock.time
        self.newest = 0
        """The step of the set that was closed last."""

    def put_object(self, Bucket: str, Key: str, Body: Any, **options: Any) -> None:  # noqa: N803
        super().put_object(Bucket, Key, Body, **options)
        self.calls.clear()
        body = self.objects[Bucket, Key]
        self._replay.aws.s3.write(Bucket, Key, body)
        if Key.endswith(f"/{keys.CLOSED}"):
            self.newest = decode(CheckpointSet, body).step

    def delete_objects(self, Bucket: str, Delete: dict[str, Any]) -> dict[str, Any]:  # noqa: N803
        for one in Delete["Objects"]:
            self._replay.aws.s3.buckets[Bucket].objects.pop(one["Key"], None)
        return super().delete_objects(Bucket, Delete)


class Replay:
    """A deployment with one execution. `leaps`: quiet times are left out, in which reports and looks would say the same again."""

    def __init__(self, trace: Trace, assumed: Assumed, folder: Path, *, seed: int = 0, leaps: bool = True) -> None:
        self.trace, self.assumed, self.folder, self._leaps = trace, assumed, folder, leaps
        places = [replace(PLACE, zones=PLACE.zones[:1])]  # a trace is of one zone
        self.aws = admits(deployed(places=places), places)
        self.ec2, self.functions = home(self.aws), Functions(self.aws)
        self.functions.admission = replace(self.functions.admission, limits=LIMITS)
        self.s3 = _Kept(self)
        self.chance = Chance(seed, trace.name)
        self.aws.events.weather = self._delays
        self.begins_at = self.aws.clock.now
        self.ends_at = self.begins_at + trace.length
        self.nodes: dict[str, Node] = {}
        self.trainings: dict[int, Training] = {}
        self._launches: dict[int, int] = {}
        self._trouble_at = self.begins_at
        self._taking = -1
        """The stretch of which the nodes have their notice."""
        self.job = JOB

    def run(self) -> Replayed:
        with self._installed():
            self.aws.events.every(CLOCK_S, lambda event: self._tick("launcher", event))
            self.functions.wake(self._wake)
            self._open(has=False)
            for number, stretch in enumerate(self.trace.stretches):
                self._plan(number, stretch)
            source = f"{keys.UPLOADS}{NAME}.tar.gz"
            self.aws.s3.write(JOB.home_bucket, source, packed("train.py"))
            self.machine = Interpreted(NAME, self.aws, self._invoke, synthesised(), self._request(source))
            self.machine.start()
            self._pass()
        return self._replayed()

    def _request(self, source: str) -> dict[str, Any]:
        return {
            "code": f"s3://{JOB.home_bucket}/{source}", "command": ["python", "train.py"], "instance_types": [TYPE],
            "nodes": self.trace.nodes, "market": "spot", "region": PLACE.region, "max_hours": LIMITS.max_hours,
            "max_wait_hours": MOST_WAIT_H, "checkpoint_minutes": self.assumed.save_every_s / 60,
        }  # fmt: skip

    @contextmanager
    def _installed(self) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(redirect_stdout(None))  # the functions print their metrics
            stack.enter_context(self.functions.installed())
            stack.enter_context(mock.patch.object(agent.reports, "time", self.aws.clock))
            yield

    def _pass(self) -> None:
        clock = self.aws.clock
        while clock.now < self.ends_at and not self.machine.status:
            clock.run(min(STEP_S, self.ends_at - clock.now))
            self.aws.calls.clear()
            self.functions.log.clear()
        if self.machine.status:
            return
        newest = self.trainings.get(max(self.trainings, default=0))
        if newest is not None and newest.trains:
            for node in [one for one in self.nodes.values() if one.works]:
                node.succeed()
            newest.stop(clock.now)
            while not self.machine.status:
                assert clock.now < self.ends_at + AFTER_S, f"the job does not end: {self.machine.state}"
                clock.run(STEP_S / 10)

    # The trace

    def _plan(self, number: int, stretch: Stretch, /) -> None:
        clock, begin, end = self.aws.clock, self.begins_at + stretch.begin, self.begins_at + stretch.end
        kind = self.chance.loss(self.assumed, number)
        trouble_at = max(begin, end - self.assumed.notice_s) if kind is Loss.NOTICE else end

        def opens() -> None:
            self._trouble_at = trouble_at if stretch.lost else end
            self._open(has=True)

        clock.at(begin, opens)
        if not stretch.lost:
            return
        if kind is Loss.NOTICE:
            clock.at(trouble_at, lambda: self._notice(number, stretch))
        clock.at(end, lambda: self._take(number, stretch, kind))

    def _open(self, *, has: bool) -> None:
        for zone in self.ec2.catalogue.zones:
            self.ec2.spot_capacity[TYPE, zone] = self.trace.nodes if has else 0

    def _notice(self, number: int, stretch: Stretch) -> None:
        self._taking = number
        if not self.assumed.until_the_end:
            self._open(has=False)
        self._mark(number, stretch)

    def _mark(self, number: int, stretch: Stretch) -> None:
        told = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.begins_at + stretch.end))
        for node in self._victims(number, stretch):
            node.notices.notice = json.dumps({"action": "terminate", "time": told})

    def _victims(self, number: int, stretch: Stretch) -> list[Node]:
        ranks = self.chance.ranks(number, self.trace.nodes, stretch.lost)
        return [one for one in self.nodes.values() if one.machine.runs(self.aws.clock.now) and one.rank in ranks]

    def _take(self, number: int, stretch: Stretch, kind: Loss) -> None:
        """The end of a stretch: the nodes are gone, and their peers stand still."""
        self._taking = -1
        self._open(has=False)
        for node in self._victims(number, stretch):
            node.training.stop(self.aws.clock.now)
            node.vanished = True
            if kind is Loss.SILENT:
                later = self.aws.clock.now + self.assumed.vanished_s
                self.aws.clock.at(later, lambda node=node: self._end(node))  # type: ignore[misc]
            else:
                self._end(node)

    def _end(self, node: Node) -> None:
        self.ec2.end(node.machine, TAKEN, "no Spot capacity")

    def begun(self, training: Training) -> None:
        """All ranks train from now on: rank 0 saves, again and again."""
        first = next(one for one in self.nodes.values() if one.training is training and one.rank == 0)
        every_s = self.assumed.save_every_s

        def save(number: int) -> None:
            if training.trains and first.works:
                first.save()
                self.aws.clock.at(training.began + (number + 1) * every_s, lambda: save(number + 1))

        self.aws.clock.at(training.began + every_s, lambda: save(1))

    def kept(self, attempt: int) -> bool:
        now, least_s = self.aws.clock.now, self.assumed.kept_after_s
        return any(one.trained_s(now) >= least_s for number, one in self.trainings.items() if number < attempt)

    def quiet(self, training: Training) -> bool:
        now = self.aws.clock.now
        rests = training.trains and now > training.began + QUIET_AFTER_S and now < self._trouble_at - QUIET_BEFORE_S
        return self._leaps and rests

    # Functions

    def _invoke(self, name: str, event: dict[str, Any]) -> Outcome:
        outcome = self.functions.invoke(name, event)
        if name == "launcher":
            self._meet()
        return outcome

    def _tick(self, name: str, event: Event) -> None:
        """EventBridge's clock, which is late. While everything is quiet only the heartbeat happens."""
        training = self.trainings.get(max(self.trainings, default=0))
        if training is not None and self.quiet(training):
            for wait in self.aws.states.waits.values():
                wait.beaten_at = self.aws.clock.now
            return
        if name == "launcher" and self.machine.state != WAIT:
            return  # nobody waits: it would find nothing
        minute = round((self.aws.clock.now - self.begins_at) / CLOCK_S)
        late_s = self.chance.of("clock", name, minute).uniform(*self.assumed.clock_s)
        self.aws.clock.at(self.aws.clock.now + late_s, lambda: self._woken(name, event))

    def _woken(self, name: str, event: Event) -> None:
        self._invoke(name, event)

    def _wake(self, event: Event) -> None:
        if event.get("source") == "aws.events":
            self._tick("attendant", event)
        else:
            self._woken("attendant", event)

    def _delays(self, event: Event) -> list[float]:
        drawn = self.chance.of("event", event["detail"])
        return [] if drawn.random() < self.assumed.events_lost else [drawn.uniform(*self.assumed.event_s)]

    def _meet(self) -> None:
        """What was launched boots."""
        new = [one for one in self.ec2.machines.values() if one.id not in self.nodes]
        if not new:
            return
        described = self.aws.s3.read(JOB.home_bucket, keys.JobPrefix(NAME).description)
        assert described is not None
        self.job = decode(Job, described)
        self.job = self.job.due(int(new[0].tags[tags.DEADLINE]))
        number = self._stretch()
        launch = self._launches[number] = self._launches.get(number, -1) + 1
        for machine in new:
            attempt = int(machine.tags[tags.ATTEMPT])
            training = self.trainings.setdefault(attempt, Training(self.assumed, self.trace.nodes))
            tag_s = self.chance.of("tag", machine.id).uniform(*self.assumed.tag_s)
            boot_s = self.chance.boot_s(self.assumed, number, launch, machine.index)
            pending_s = self.chance.pending_s(self.assumed, number, launch, machine.index)
            machine.running_at = machine.launched_at + pending_s
            self.nodes[machine.id] = Node(self, machine, training, boot_s=boot_s, tag_s=tag_s)
        self._sweep()
        if self._taking >= 0:
            self._mark(self._taking, self.trace.stretches[self._taking])

    def _sweep(self) -> None:
        """Folders of machines that have ended."""
        for node in self.nodes.values():
            if not node.machine.runs(self.aws.clock.now):
                shutil.rmtree(node.folder, ignore_errors=True)

    def _stretch(self) -> int:
        """The number of the stretch that is, or was last."""
        since = self.aws.clock.now - self.begins_at
        return sum(one.begin <= since for one in self.trace.stretches) - 1

    # What became of it

    def _replayed(self) -> Replayed:
        until, kept = self.aws.clock.now, self.s3.newest
        by_attempt = {
            number: [one for one in self.nodes.values() if one.attempt == number] for number in self.trainings
        }
        trained, before, paused, after, unused, paid = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for number, training in self.trainings.items():
            for node in by_attempt[number]:
                ran = node.machine.running_at
                ended = max(ran, min(node.machine.ending_at, until))
                paid += ended - ran
                if training.began == float("inf"):
                    unused += ended - ran
                    continue
                stopped = min(training.stopped, ended)
                trained += training.trained_s(stopped)
                before += training.began - ran
                paused += stopped - training.began - training.trained_s(stopped)
                after += ended - stopped
        problem = ": ".join(self.machine.problem) if self.machine.problem else ""
        progress = float(kept * self.trace.nodes)
        return Replayed(
            paid_s=paid, progress_s=progress, lost_s=trained - progress, before_s=before, paused_s=paused, after_s=after,
            unused_s=unused, attempts=len(self.trainings), status=self.machine.status, problem=problem,
        )  # fmt: skip


def replay(trace: Trace, assumed: Assumed, *, seed: int = 0, leaps: bool = True) -> Replayed:
    """The same trace, assumptions and seed: the same figures."""
    with tempfile.TemporaryDirectory() as folder:
        return Replay(trace, assumed, Path(folder), seed=seed, leaps=leaps).run()
