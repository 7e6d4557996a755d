"""Many jobs on one virtual clock: invocations of the attendant that live side by side, each with its processor and its memory."""

from __future__ import annotations

import json
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any
from unittest import mock

from botocore.exceptions import ReadTimeoutError

import attendant.curves
import attendant.passes
import aws.state
from aws import breaker
from aws.clients import IN_PASSING
from contract import items, tags
from contract.codec import encode
from contract.items import ItemKey
from contract.jobs import Job
from contract.places import Place, Zone
from contract.reports import Exit, NodeReport, Phase, Progress
from tests.builders import INTENT, JOB, LAUNCHED, PLACE, rung
from tests.fakes import state, table, wire
from tests.fakes.aws import Aws
from tests.fakes.clock import Killed
from tests.fakes.events import Event
from tests.fakes.functions import CLOCK_S, Functions, Outcome
from tests.fakes.threads import Process, SharedClock
from tests.fakes.wire import HOME, Call
from tests.fakes.yard import deployed

SHARE = 512 / 1769
"""Of a processor, what a function of 512 MB has."""
CALL_CPU_S, ITEM_CPU_S = 0.003, 0.0005
"""Of a whole processor, what a call of the attendant and an item, or instance, of an answer take, with all that is done beside and
between. `make bench-state` measures both; these are higher."""
COLD_S = 2.0
"""From an invocation to its handler where no process is warm."""
SIDE_BY_SIDE, BATCH = 1, 100
"""As the Workflow stack maps the stream."""
options: Any = IN_PASSING
TRY_S = options.connect_timeout + options.read_timeout
"""How long a try of a call in passing takes where nobody answers, at most."""
NAMES = (
    HOME,
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "eu-north-1",
    "us-east-1",
    "us-east-2",
    "us-west-2",
    "ca-central-1",
    "ap-south-1",
)
PLACES = tuple(
    Place(
        region=name,
        bucket=f"yard-bytes-123456789012-{name}",
        security_groups=("sg-1",),
        launch_template="lt-1",
        launch_template_version=PLACE.launch_template_version,
        zones=(Zone(name=f"{name}a", subnet=f"subnet-{name}", placement_groups=(f"group-{name}",)),),
    )
    for name in NAMES
)
USER_DATA = "".join(f"{number:x}" for number in range(3000))
"""As long as the real one, and not of one letter, which packs too well."""
TOKEN = "AQC" + "x" * 700
"""As long as Step Functions' own."""
WORKING = NodeReport(
    job="",
    attempt=1,
    rank=0,
    instance="",
    phase=Phase.TRAINING,
    sent_at=0.0,
    progress=Progress(step=1, metric=0.5),
    timeline={"booted": 1.0, "started": 2.0},
)


@dataclass
class Memory:
    """A process of Lambda's: what its breaker remembers, and its share of a processor."""

    regions: defaultdict[str, breaker.Region] = field(default_factory=lambda: defaultdict(breaker.Region))
    free_at: float = 0.0


class _Here(threading.local):
    """The process in which a thread runs, and when its invocation ends."""

    memory: Memory | None = None


_here = _Here()


class _Regions:
    """Stands in for the breaker's memory, which each process has for itself."""

    def __getitem__(self, name: str) -> breaker.Region:
        assert _here.memory is not None
        return _here.memory.regions[name]

    def clear(self) -> None:
        """Nothing here is anybody's."""


class _Later(Future[Any]):
    """Waits on the virtual clock."""

    clock: SharedClock

    def result(self, timeout: float | None = None) -> Any:
        while not self.done():
            self.clock.sleep(0.01)
        return super().result(timeout)


class SideBySide:
    """A ThreadPoolExecutor whose threads live at the same time on the virtual clock, and share their invocation's processor."""

    def __init__(self, at_once: int) -> None:
        clock = _clocks[-1]
        self._clock, self._free, self._end, self._memory = clock, at_once, clock.ends[-1], _here.memory
        self._waiting = deque[tuple[_Later, Callable[[], Any]]]()
        self._all: list[_Later] = []

    def __enter__(self) -> SideBySide:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for one in self._all if kind is None else []:
            while not one.done():
                self._clock.sleep(0.01)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future = _Later()
        future.clock = self._clock
        self._all.append(future)
        self._waiting.append((future, lambda: function(*arguments)))
        if self._free:
            self._free -= 1
            self._clock.at(self._clock.now, Process(self._clock, self._work, lambda _: None).start)
        return future

    def map(self, function: Callable[..., Any], several: Iterable[Any]) -> Iterator[Any]:
        return iter([one.result() for one in [self.submit(function, one) for one in several]])

    def _work(self) -> None:
        _here.memory = self._memory
        self._clock.ends.append(self._end)
        while self._waiting:
            future, body = self._waiting.popleft()
            try:
                future.set_result(body())
            except BaseException as problem:
                future.set_exception(problem)
                if isinstance(problem, Killed):
                    return
        self._free += 1


_clocks: list[SharedClock] = []


class Account(Aws):
    """AWS, with what calls cost the process that makes them; EC2 of `silent` answers nobody, nor does STS where `keyless`."""

    clock: SharedClock
    silent: str = ""
    keyless: bool = False
    call_cpu_s, item_cpu_s = CALL_CPU_S, ITEM_CPU_S

    def __init__(self, now: float) -> None:
        super().__init__(now=now, clock=SharedClock(now))
        self.looks: list[tuple[float, str]] = []
        """When each look began, and at which job."""
        self.reports_read = 0
        self.beats: dict[str, list[float]] = defaultdict(list)
        """By token, when its heartbeats and its verdict came."""

    def answer(self, call: Call) -> dict[str, Any]:
        if _here.memory is None:
            return super().answer(call)
        if call.operation == "GetItem" and call.params["Key"]["pk"]["S"].startswith("job#"):
            self.looks.append((self.clock.now, call.params["Key"]["pk"]["S"].removeprefix("job#")))
        self._work(self.call_cpu_s)
        if (call.service == "ec2" and call.region == self.silent) or (call.service == "sts" and self.keyless):
            self.clock.spend(TRY_S)
            raise ReadTimeoutError(endpoint_url="x")
        answer = super().answer(call)
        if call.operation.startswith("SendTask"):
            self.beats[call.params["taskToken"]].append(self.clock.now)
        found = sum(map(len, answer["Responses"].values())) if "Responses" in answer else 0
        self.reports_read += found
        found += len(answer.get("Items", [])) + sum(len(one["Instances"]) for one in answer.get("Reservations", []))
        self._work(self.item_cpu_s * found)
        return answer

    def _work(self, seconds: float) -> None:
        """The threads of an invocation work one after the other."""
        memory = _here.memory
        assert memory is not None
        memory.free_at = max(memory.free_at, self.clock.now) + seconds / SHARE
        self.clock.spend(memory.free_at - self.clock.now)


class Fleet:
    """A deployment with jobs that train, of so many `nodes` each, launched `age_s` ago in all regions in turn. `limit`: how many
    functions the account runs at once."""

    def __init__(
        self,
        nodes: Sequence[int],
        *,
        now: float,
        silent: str = "",
        limit: int = 1000,
        age_s: float = 3600.0,
        warm: int = 0,
        reporting: bool = True,
    ) -> None:
        self.aws = Account(now)
        self.aws.silent, self.aws.table.weather = silent, table.fair
        self.clock, self._limit, self._running = self.aws.clock, limit, 0
        self._launched_at = now - age_s
        deployed(fake=self.aws, places=PLACES)
        self.functions = Functions(self.aws)
        self._warm = [Memory() for _ in range(warm)]
        self.cold, self.dropped, self.ticks, self.problems = 0, 0, list[float](), list[BaseException]()
        self.lasted = list[float]()
        """Of each invocation, the seconds that are billed."""
        self.jobs = [replace(JOB, id=f"job-{number:04}", nodes=size) for number, size in enumerate(nodes)]
        self.regions = {job.id: NAMES[number % len(NAMES)] for number, job in enumerate(self.jobs)}
        self.instances = {job.id: [f"i-{job.id}-{rank}" for rank in range(job.nodes)] for job in self.jobs}
        self.tokens: dict[str, str] = {}
        self.ended: dict[str, float] = {}
        """When the last node of a job wrote that its work is done."""
        usual, self.aws.table.knobs = (
            self.aws.table.knobs,
            replace(self.aws.table.knobs, partition_written=float("inf")),
        )
        for job in self.jobs:
            self._launched(job)
        self.aws.table.knobs = usual
        if reporting:
            self._beat()

    @contextmanager
    def installed(self) -> Iterator[None]:
        _clocks.append(self.clock)
        with ExitStack() as stack:
            stack.enter_context(self.functions.installed())
            for module in (attendant.passes, attendant.curves, aws.state):
                stack.enter_context(mock.patch.object(module, "ThreadPoolExecutor", SideBySide))
            stack.enter_context(mock.patch.object(breaker, "regions", _Regions()))
            self._wake()
            yield
        _clocks.pop()

    @staticmethod
    def key(job: str) -> ItemKey:
        """Of the Train state that waits for the job."""
        return items.waiting(job, 1, "a" * 64)

    def ends(self, job: str, *, after_s: float = 0.0, apart_s: float = 0.5) -> None:
        """All nodes of a job end without an error, one after the other within so many seconds."""
        ids = self.instances[job]
        for rank in range(len(ids)):
            at = self.clock.now + after_s + apart_s * rank / len(ids)
            self.clock.at(at, lambda rank=rank: self._end(job, rank))  # type: ignore[misc]

    def late(self) -> dict[str, float]:
        """By job, how many seconds after a tick its look began: the longest; jobs that ended before are not counted."""
        looks = defaultdict[str, list[float]](list)
        for at, job in self.aws.looks:
            looks[job].append(at)
        found = dict[str, float]()
        for job in (one.id for one in self.jobs):
            for tick in (one for one in self.ticks if self.ended.get(job, float("inf")) > one + CLOCK_S):
                first = min((at for at in looks[job] if at >= tick), default=float("inf"))
                found[job] = max(found.get(job, 0.0), first - tick)
        return found

    def unbeaten(self) -> float:
        """The longest time that any Train state went without a heartbeat or an answer."""
        longest = 0.0
        for job, token in self.tokens.items():
            times = [self.ticks[0], *self.aws.beats[token]]
            times += [] if job in self.ended else [self.clock.now]
            longest = max(longest, *(b - a for a, b in pairwise(times)))
        return longest

    def verdicts(self) -> dict[str, float]:
        """By job that ended, seconds from its last urgent write to the answer to Train, beyond the delay of the stream."""
        delay_s = next(iter(table.fair({})))
        waits = {job: self.aws.states.waits[self.tokens[job]] for job in self.ended}
        return {
            job: self.aws.beats[self.tokens[job]][-1] - at - delay_s if waits[job].output else float("inf")
            for job, at in self.ended.items()
        }

    # Jobs and nodes

    def _launched(self, job: Job) -> None:
        region, ids = self.regions[job.id], self.instances[job.id]
        state.store(self.aws, items.job(job.id), encode(job))
        addresses = tuple(f"10.0.0.{rank + 4}" for rank in range(len(ids)))
        step = replace(
            INTENT.steps[0],
            rung=rung(f"{region}a", region=region),
            answer=replace(LAUNCHED, at=self._launched_at, instances=tuple(ids), addresses=addresses),
        )
        intent = replace(INTENT, job=job.id, steps=(step,), user_data=USER_DATA)
        state.store(self.aws, items.launch(job.id, 1, 1), encode(intent))
        marks = {tags.DEPLOYMENT: job.deployment, tags.JOB: job.id, tags.ATTEMPT: "1"}
        for rank, one in enumerate(ids):
            self.aws.ec2[region].put(marks, launched_at=self._launched_at, id=one, index=rank)
        wait = self.aws.states.wait(heartbeat_s=300.0, timeout_s=86400.0)
        self.aws.states.waits[TOKEN + wait.token] = wait
        self.tokens[job.id] = TOKEN + wait.token
        told = {"job": job.id, "attempt": 1, "token": self.tokens[job.id]}
        state.store(self.aws, self.key(job.id), json.dumps(told).encode())

    def _beat(self) -> None:
        """Every node whose work goes on reports."""
        self.clock.at(self.clock.now + JOB.timing.report_every_s, self._beat)
        for job, ids in self.instances.items():
            if job not in self.ended:
                for rank, one in enumerate(ids):
                    self._report(WORKING, job, rank, one)

    def _end(self, job: str, rank: int) -> None:
        self.ended[job] = self.clock.now
        over = replace(WORKING, phase=Phase.ENDED, exit=Exit(code=0))
        self._report(over, job, rank, self.instances[job][rank], urgent=True)

    def _report(self, one: NodeReport, job: str, rank: int, instance: str, *, urgent: bool = False) -> None:
        told = replace(one, job=job, rank=rank, instance=instance, sent_at=self.clock.now)
        state.report(self.aws, told, urgent=urgent)

    # Invocations

    def _wake(self) -> None:
        def tick(event: Event) -> None:
            self.ticks.append(self.clock.now)
            for one in wire._quotas:  # a process has its own, and asks a silent region once or twice a minute
                one.__init__()  # type: ignore[misc]
            self._start(event)

        self.aws.events.every(CLOCK_S, tick)
        self.aws.later["attendant"] = self._start
        self.aws.table.feed(
            state.TABLE, self._deliver, begin=self._begin,
            fits=lambda record: items.URGENT in record["dynamodb"].get("NewImage", {}),
            batch=BATCH, at_once=SIDE_BY_SIDE, retries=2, bisect=True, age_s=300.0,
        )  # fmt: skip

    def _start(self, event: Event) -> None:
        """Asynchronously: nobody hears of its end."""
        Process(self.clock, lambda: self._run(event), self._over).start()

    def _begin(self, body: Callable[[], None]) -> None:
        Process(self.clock, body, self._over).start()

    def _deliver(self, event: Event) -> Any:
        outcome = self._run(event)
        if outcome.error:
            raise RuntimeError(outcome.error)
        return outcome.value

    def _over(self, process: Process) -> None:
        if process.problem is not None:
            self.problems.append(process.problem)

    def _run(self, event: Event) -> Outcome:
        """In a warm process where there is one, and once the account may run one more function."""
        given_up = self.clock.now + CLOCK_S
        while self._running >= self._limit:
            self.clock.sleep(1.0)
            if self.clock.now >= given_up:
                self.dropped += 1
                raise RuntimeError("throttled")
        self._running += 1
        try:
            if self._warm:
                _here.memory = self._warm.pop()
            else:
                self.cold, _here.memory = self.cold + 1, Memory()
                self.clock.sleep(COLD_S)
            began = self.clock.now
            outcome = self.functions.invoke("attendant", event)
            self.lasted.append(self.clock.now - began)
            return outcome
        finally:
            self._warm.append(_here.memory or Memory())
            self._running, _here.memory = self._running - 1, None
