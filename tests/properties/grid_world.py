"""A grid of many lines on the fake AWS: Batch with its queue, and children that live, are killed, retired and started twice."""

from __future__ import annotations

import contextlib
import io
import json
import math
import random
import resource
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from contract import tags
from contract.grid import Backend, ExitCode, Line, LineOutcome, Record
from contract.mpi_job_facts import read_created
from contract.timing import Timing
from grid_child.main import main
from grid_child.pace import turn_s
from grid_child.waits import Waits
from localaws.model import Tokens
from localaws.services.sagemaker_planned import Life
from tests.fakes.aws import Aws
from tests.fakes.executions import Execution
from tests.fakes.faults import Faults, Kind
from tests.fakes.grid_yard import (
    BUCKET,
    BYTES,
    HOME,
    NOW,
    PREFIX,
    REGIONS,
    GridYard,
    grid_of,
    job_line_of,
    line_of,
    pod_line_of,
)
from tests.fakes.line_jobs import JobLife, LineJobs
from tests.fakes.pod_jobs import PodJobs, PodLife
from tests.fakes.s3 import Bucket
from tests.fakes.threads import STACK, Process, SharedClock
from tests.fakes.wire import Call

SIGKILL_S = 30.0
ATTEMPTS = 10
BACKENDS = ("sagemaker", "stepfunctions", "kubernetes")
PUBLISHED = {"StartExecution": (150.0, 800.0), "DescribeExecution": (10.0, 250.0), "StopExecution": (25.0, 200.0)}
"""Calls a second and at once that Step Functions takes in a region like eu-central-1 (Step Functions' quotas)."""
STARTS_A_SECOND = 20.0
"""Tasks that Fargate starts, about (its quota on launches in most accounts)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """How often what goes wrong, from 0 to 1."""

    throttled: float = 0.05
    """Of calls to SageMaker and Step Functions."""
    lost: float = 0.01
    """Of all calls: done, and never answered."""
    killed: float = 0.03
    """Of the children, at some moment."""
    retired: float = 0.03
    """SIGTERM without anybody's order, SIGKILL 30 s later."""
    doubled: float = 0.01
    """A second child of the same line at the same time."""
    refused: float = 0.005
    """Of the lines: Planned, or Admit, does not take their requests."""


class RandomFaults(Faults):
    """Throttles and lost answers by chance."""

    def __init__(self, weather: Weather, chance: random.Random, counts: Counter[str]) -> None:
        super().__init__()
        self.weather, self.chance, self.counts = weather, chance, counts
        self.fair = False

    def take(self, call: Call) -> Kind | None:
        drawn = self.chance.random()
        if self.fair or fnmatchcase(call.name, "batch:*"):
            return None
        if drawn < self.weather.lost:
            self.counts["lost responses"] += 1
            return Kind.LOST
        if call.service in BACKENDS and drawn < self.weather.lost + self.weather.throttled:
            self.counts["throttles by chance"] += 1
            return Kind.THROTTLED
        return None


@dataclass
class _Task:
    """One attempt of one child."""

    place: int
    index: int
    attempt: int
    round: int
    twin: bool = False


@dataclass
class GridWorld:
    """`run` drives it to its end. Counts, records and trainings say what came of it."""

    lines: int
    seed: int
    jobs: float = 0.0
    """The share of the lines that run on clusters of our own."""
    pods: float = 0.0
    """The share of the others that run on Kubernetes."""
    weather: Weather = field(default_factory=Weather)
    pace: float = 0.5
    concurrent: int = 10_000
    counts: Counter[str] = field(default_factory=Counter)
    doubles: list[str] = field(default_factory=list)
    """Lines that had two trainings alive at once."""
    exits: Counter[str] = field(default_factory=Counter)
    problems: list[BaseException] = field(default_factory=list)
    """Of children that ended as no child may."""

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.clock = SharedClock(NOW)
        self.aws = Aws(now=NOW, clock=self.clock)
        for name in (BUCKET, BYTES):
            self.aws.s3.buckets[name] = Bucket(region=HOME)
        self.faults = RandomFaults(self.weather, self.chance, self.counts)
        self.aws.faults = self.faults
        lines = [self._line(index) for index in range(self.lines)]
        counts = Counter(one.region for one in lines)
        slots: Counter[str] = Counter()
        for index, one in enumerate(lines):
            lines[index] = replace(one, slot=slots[one.region])
            slots[one.region] += 1
        self.grid = replace(grid_of(self.lines, REGIONS, self.pace), regions=dict(counts))
        self.yard = GridYard(self.aws, self.grid, lines)
        self.line_jobs = LineJobs(self.aws, BUCKET, self._job_life)
        self._job_lives: dict[str, JobLife] = {}
        self._pod_lives: dict[str, PodLife] = {}
        self.pod_jobs = PodJobs(self.aws, self._pod_life)
        self.aws.states.executions.limits = {operation: Tokens(*rate) for operation, rate in PUBLISHED.items()}
        self.refused = {one.training for one in self.yard.lines if self.chance.random() < self.weather.refused}
        for region in REGIONS:
            sagemaker = self.aws.sagemaker(region)
            sagemaker.clock, sagemaker.life = self.clock, self._life
            sagemaker.limits["CreateTrainingJob"] = Tokens(rate=1.25 * self.pace, burst=10)
            sagemaker.limits["DescribeTrainingJob"] = Tokens(rate=20 * self.pace + 10, burst=50)
            sagemaker.refusals = dict.fromkeys(self.refused, "Invalid image in AlgorithmSpecification")
        self.aws.cluster.refusals = dict.fromkeys(self.refused, "spec: Invalid value")
        self.queue: deque[_Task] = deque()
        self.running: dict[int, tuple[_Task, Process, Waits]] = {}
        self._number = 0
        self.coming = 0
        """Attempts that Batch is about to start."""
        self._starting = False

    def _line(self, index: int) -> Line:
        if _is_turn(index, self.jobs):
            return job_line_of(index)
        return pod_line_of(index) if _is_turn(index, self.pods) else line_of(index)

    def _pod_life(self, name: str) -> PodLife:
        if name not in self._pod_lives:
            drawn, ends_s = self.chance.random(), self.chance.uniform(20, 150)
            life = PodLife(placed_s=self.chance.uniform(20, 60), ends_s=ends_s)
            if drawn < 0.05:
                life = replace(life, fails="ValueError: no such column")
            elif drawn < 0.1:
                life = replace(life, worker_fails="exec: /usr/sbin/sshd: not found")
            self._pod_lives[name] = life
        return self._pod_lives[name]

    def _job_life(self, name: str) -> JobLife:
        if name not in self._job_lives:
            drawn, ends_s = self.chance.random(), self.chance.uniform(60, 200)
            fails = "InvalidRequest" if name in self.refused else "TrainingFailed" if drawn < 0.05 else ""
            self._job_lives[name] = JobLife(ends_s=ends_s, error=fails)
        return self._job_lives[name]

    def _life(self, _: str) -> Life:
        drawn = self.chance.random()
        life = Life(
            starting_s=self.chance.uniform(20, 60),
            downloading_s=5,
            training_s=self.chance.uniform(20, 120),
            uploading_s=5,
            metrics={"loss": 0.5},
        )
        if drawn < 0.05:
            return replace(life, failure="AlgorithmError: ExecuteUserScriptError: exit code 1")
        if drawn < 0.07:
            nowhere = "CapacityError: Unable to provision requested ML compute capacity."
            return replace(life, failure=nowhere, fails_while="Starting")
        return replace(life, interruptions=1) if drawn < 0.1 else life

    def run(self) -> None:
        """Three rounds at most, as the machine's; then nobody is left."""
        self.yard.write()
        with self._hosted():
            self._round(1, list(range(self.lines)))
            for number in (2, 3):
                if missing := self.missing():
                    self.yard.put(PREFIX.work(number), json.dumps(missing).encode())
                    self._round(number, missing)

    def missing(self) -> list[int]:
        live = self.aws.s3.buckets[BUCKET].objects
        return [index for index in range(self.lines) if PREFIX.record(index) not in live]

    @contextlib.contextmanager
    def _hosted(self) -> Iterator[None]:
        before = threading.stack_size(STACK)
        told = io.StringIO()
        told.write = lambda text: len(text)  # type: ignore[method-assign]
        try:
            with self.aws.connected(), contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
                yield
        finally:
            threading.stack_size(before)

    def _round(self, number: int, work: list[int]) -> None:
        self.queue.extend(_Task(place, index, 1, number) for place, index in enumerate(work))
        self._start_one()
        while self.queue or self.running or self.coming or self._starting:
            self.clock.run(5.0)

    def _start_one(self) -> None:
        """Fargate starts the head of the queue where there is room, about twenty a second."""
        self._starting = bool(self.queue)
        if not self.queue:
            return
        self.clock.at(self.clock.now + 1 / STARTS_A_SECOND, self._start_one)
        if len(self.running) < self.concurrent:
            task = self.queue.popleft()
            self._begin(task)
            if self.chance.random() < self.weather.doubled:
                self.counts["second children"] += 1
                self._begin(replace(task, twin=True, attempt=task.attempt + self.chance.randrange(2)))

    def _begin(self, task: _Task) -> None:
        self._number += 1
        number, waits = self._number, Waits(self.clock)
        variables = self.yard.variables(task.place, attempt=task.attempt, round_=task.round)
        chance = random.Random(f"{self.seed} {number}")
        process = Process(
            self.clock,
            lambda: main(variables, waits=waits, chance=chance),
            lambda process: self._ended(number, task, process),
        )
        self.running[number] = (task, process, waits)
        self.counts["children"] += 1
        fate, moment = self.chance.random(), self.clock.now + self.chance.uniform(0, 400)
        if fate < self.weather.killed:
            self.clock.at(moment, lambda: self._kill(process, "killed"))
        elif fate < self.weather.killed + self.weather.retired:
            self.clock.at(moment, lambda: self._retire(process, waits))
        self.clock.at(self.clock.now, process.start)

    def _kill(self, process: Process, what: str) -> None:
        if process.alive:
            self.counts[what] += 1
            process.kill()

    def _retire(self, process: Process, waits: Waits) -> None:
        if process.alive:
            self.counts["retired"] += 1
            process.interrupt(waits.called)
            self.clock.at(self.clock.now + SIGKILL_S, lambda: self._kill(process, "retired by SIGKILL"))

    def _ended(self, number: int, task: _Task, process: Process) -> None:
        del self.running[number]
        code = process.result
        if process.problem is not None and type(process.problem).__name__ != "Killed":
            self.problems.append(process.problem)
        self.exits["killed" if code is None else ExitCode(code).name] += 1
        if not task.twin and code in {None, ExitCode.AGAIN} and task.attempt < ATTEMPTS:
            again = replace(task, attempt=task.attempt + 1)
            self.coming += 1
            self.clock.at(self.clock.now + self.chance.uniform(10, 40), lambda: self._retry(again))

    def _retry(self, task: _Task) -> None:
        self.coming -= 1
        self._begin(task)

    def trainings(self) -> list[Any]:
        return [one for region in REGIONS for one in self.aws.sagemaker(region).trainings.values()]

    def executions(self) -> list[Execution]:
        """Of the lines on clusters of our own."""
        return list(self.aws.states.executions.known.values())

    def still_alive(self) -> list[str]:
        """What is still alive."""
        trainings = [one.name for one in self.trainings() if one.lives(self.clock.now)]
        return [
            *trainings,
            *self.line_jobs.running,
            *self.pod_jobs.running,
            *(one.name for one in self.executions() if one.status == "RUNNING"),
        ]

    def alive_at_once(self) -> int:
        """The most trainings that any line had alive at the same moment, over all regions."""
        spans: dict[str, list[tuple[float, float]]] = {}
        for one in self.trainings():
            spans.setdefault(one.tags[tags.LINE], []).append((one.created_at, one.ends_at))
        for name, begin, end in self.pod_jobs.spans:
            spans.setdefault(f"pods {name}", []).append((begin, end))
        for job in self.executions():
            mark = json.loads(job.input)["grid_line"]["index"]
            spans.setdefault(str(mark), []).append((job.started_at, job.ended_at or self.clock.now))
        return max(
            sum(begin <= moment < end for begin, end in found) for found in spans.values() for moment, _ in found
        )

    def records(self) -> dict[int, Record]:
        """The newest version of each; a line that has none is left out."""
        found = {index: self.yard.record(index) for index in range(self.lines)}
        return {index: record for index, record in found.items() if record is not None}

    def wrong_records(self) -> list[int]:
        """Lines of which the record was written twice, or says something else than SageMaker."""
        wrong, objects = [], self.aws.s3.buckets[BUCKET].objects
        for index, record in self.records().items():
            status = self._outcome(index)
            if record.outcome.value != status or len(objects[PREFIX.record(index)]) != 1:
                wrong.append(index)
        return wrong

    def _outcome(self, index: int) -> str:
        """How the line ended, by what its backend has."""
        if self.yard.lines[index].backend is Backend.KUBERNETES:
            return self._pod_outcome(index)
        if (job := self.yard.job(index)) is not None:
            outcomes = {
                "SUCCEEDED": LineOutcome.COMPLETED,
                "FAILED": LineOutcome.FAILED,
                "ABORTED": LineOutcome.STOPPED,
            }
            return (LineOutcome.REFUSED if job.error == "InvalidRequest" else outcomes[job.status]).value
        training = self.yard.training(index)
        return LineOutcome.REFUSED.value if training is None else training.step(self.clock.now).status

    def _pod_outcome(self, index: int) -> str:
        job = self.yard.pod_job(index)
        if job is None:
            return LineOutcome.REFUSED.value
        life = self._pod_life(self.yard.lines[index].training)
        return (LineOutcome.FAILED if life.fails or life.worker_fails else LineOutcome.COMPLETED).value

    def rate_held(self) -> float:
        """The share of the lines that was accepted when the schedule of its region was over."""
        on_time = total = 0
        for region, count in self.grid.regions.items():
            of_region = [one for one in self.yard.lines if one.region == region and one.training not in self.refused]
            over = self._begin_of(of_region[0]) + count / self.pace
            on_time += sum(self._created_at(one) <= over for one in of_region)
            total += len(of_region)
        return on_time / total

    def _created_at(self, line: Line) -> float:
        if line.backend is Backend.KUBERNETES:
            job = self.yard.pod_job(line.index)
            return math.inf if job is None else read_created(job) or math.inf
        job, training = self.yard.job(line.index), self.yard.training(line.index)
        return job.started_at if job is not None else math.inf if training is None else training.created_at

    def _begin_of(self, line: Line) -> float:
        return self.grid.planned_at + min(Timing().training_watch_s, turn_s(line, self.grid))

    def table(self, wall_s: float) -> list[tuple[str, str]]:
        """What a person wants to know of the run."""
        records = self.lines - len(self.missing())
        trainings = self.trainings()
        throttled = sum(bucket.throttled for one in REGIONS for bucket in self.aws.sagemaker(one).limits.values())
        throttled += sum(bucket.throttled for bucket in self.aws.states.executions.limits.values())
        return [
            ("lines", f"{self.lines:,} in {len(self.grid.regions)} regions"),
            ("records", f"{records:,}"),
            ("trainings created", f"{len(trainings):,}"),
            ("trainings of one line alive at once, at most", f"{self.alive_at_once()}"),
            ("executions of the Train machine started", f"{len(self.line_jobs.started):,}"),
            ("trainings and jobs running at the end", f"{len(self.still_alive())}"),
            ("lines refused by SageMaker or Admit", f"{len(self.refused):,}"),
            ("children started", f"{self.counts['children']:,}"),
            ("second children of a line", f"{self.counts['second children']:,}"),
            ("children killed", f"{self.counts['killed']:,}"),
            ("children retired (SIGTERM)", f"{self.counts['retired']:,}"),
            ("calls of AWS", f"{len(self.aws.calls):,}"),
            ("throttles", f"{throttled + self.counts['throttles by chance']:,}"),
            ("responses lost", f"{self.counts['lost responses']:,}"),
            ("submission rate held", f"{self.rate_held():.1%} of {self.pace * len(self.grid.regions):g} a second"),
            ("virtual time", f"{(self.clock.now - NOW) / 60:.1f} min"),
            ("wall time", f"{wall_s:.1f} s"),
            ("peak memory", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"),
        ]


def driven(lines: int, seed: int, **settings: Any) -> tuple[GridWorld, float]:
    """A world that was run to its end, and the seconds that it took here."""
    world, began = GridWorld(lines=lines, seed=seed, **settings), time.monotonic()
    world.run()
    return world, time.monotonic() - began


def _is_turn(index: int, share: float) -> bool:
    """Whether the index is among this share of all, evenly spread."""
    return int((index + 1) * share) > int(index * share)
