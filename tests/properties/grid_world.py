"""A grid of many lines on the fake AWS: Batch with its queue, and children that live, are killed, retired and started twice."""

from __future__ import annotations

import contextlib
import io
import json
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
from contract.grid import ExitCode, Line, LineOutcome, Record
from contract.timing import Timing
from grid_child.main import main
from grid_child.pace import turn_s
from grid_child.waits import Waits
from localaws.model import Tokens
from localaws.services.sagemaker_planned import Life
from tests.fakes.aws import Aws
from tests.fakes.faults import Faults, Kind
from tests.fakes.grid_yard import BUCKET, HOME, NOW, PREFIX, REGIONS, GridYard, grid_of, line_of
from tests.fakes.s3 import Bucket
from tests.fakes.threads import STACK, Process, SharedClock
from tests.fakes.wire import Call

SIGKILL_S = 30.0
ATTEMPTS = 10
STARTS_A_SECOND = 20.0
"""Tasks that Fargate starts, about (its quota on launches in most accounts)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """How often what goes wrong, from 0 to 1."""

    throttled: float = 0.05
    """Of calls to SageMaker."""
    lost: float = 0.01
    """Of all calls: done, and never answered."""
    killed: float = 0.03
    """Of the children, at some moment."""
    retired: float = 0.03
    """SIGTERM without anybody's order, SIGKILL 30 s later."""
    doubled: float = 0.01
    """A second child of the same line at the same time."""
    refused: float = 0.005
    """Of the lines: Planned does not take their requests."""


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
        if call.service == "sagemaker" and drawn < self.weather.lost + self.weather.throttled:
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
        self.aws = Aws(now=NOW)
        self.clock = SharedClock(NOW)
        self.aws.clock = self.aws.s3.clock = self.clock
        self.aws.s3.buckets[BUCKET] = Bucket(region=HOME)
        self.faults = RandomFaults(self.weather, self.chance, self.counts)
        self.aws.faults = self.faults
        self.grid = grid_of(self.lines, REGIONS, self.pace)
        self.yard = GridYard(self.aws, self.grid, [line_of(index) for index in range(self.lines)])
        self.refused = {one.training for one in self.yard.lines if self.chance.random() < self.weather.refused}
        for region in REGIONS:
            sagemaker = self.aws.sagemaker(region)
            sagemaker.clock, sagemaker.life = self.clock, self._life
            sagemaker.limits["CreateTrainingJob"] = Tokens(rate=1.25 * self.pace, burst=10)
            sagemaker.limits["DescribeTrainingJob"] = Tokens(rate=20 * self.pace + 10, burst=50)
            sagemaker.refusals = dict.fromkeys(self.refused, "Invalid image in AlgorithmSpecification")
        self.queue: deque[_Task] = deque()
        self.running: dict[int, tuple[_Task, Process, Waits]] = {}
        self._number = 0
        self.coming = 0
        """Attempts that Batch is about to start."""
        self._starting = False

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

    def alive_at_once(self) -> int:
        """The most trainings that any line had alive at the same moment, over all regions."""
        spans: dict[str, list[tuple[float, float]]] = {}
        for one in self.trainings():
            spans.setdefault(one.tags[tags.LINE], []).append((one.created_at, one.ends_at))
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
            training = self.yard.training(index)
            status = LineOutcome.REFUSED.value if training is None else training.step(self.clock.now).status
            if record.outcome.value != status or len(objects[PREFIX.record(index)]) != 1:
                wrong.append(index)
        return wrong

    def rate_held(self) -> float:
        """The share of the lines that was accepted when the schedule of its region was over."""
        on_time = total = 0
        for region, count in self.grid.regions.items():
            of_region = [one for one in self.yard.lines if one.region == region and one.training not in self.refused]
            over = self._begin_of(of_region[0]) + count / self.pace
            known = self.aws.sagemaker(region).trainings
            on_time += sum(one.training in known and known[one.training].created_at <= over for one in of_region)
            total += len(of_region)
        return on_time / total

    def _begin_of(self, line: Line) -> float:
        return self.grid.planned_at + min(Timing().training_watch_s, turn_s(line, self.grid))

    def table(self, wall_s: float) -> list[tuple[str, str]]:
        """What a person wants to know of the run."""
        records = self.lines - len(self.missing())
        trainings = self.trainings()
        throttled = sum(bucket.throttled for one in REGIONS for bucket in self.aws.sagemaker(one).limits.values())
        return [
            ("lines", f"{self.lines:,} in {len(self.grid.regions)} regions"),
            ("records", f"{records:,}"),
            ("trainings created", f"{len(trainings):,}"),
            ("trainings of one line alive at once, at most", f"{self.alive_at_once()}"),
            ("trainings running at the end", f"{sum(one.lives(self.clock.now) for one in trainings)}"),
            ("lines refused by SageMaker", f"{len(self.refused):,}"),
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
