"""An account whose jobs, grids and searches get pages: their documents, the queue of messages, the clock, and the function behind both."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

import botocore.endpoint
import pytest

import aws.grids
import messages.work
import page_writer.handler
import page_writer.writing
import searches.store
from aws.state import State
from contract import keys
from contract.codec import encode
from contract.grid import Grid, GridPrefix, Record
from contract.intents import Intent, LaunchAnswer, LaunchOutcome
from contract.jobs import Job
from contract.page_environments import PageEnvironment
from contract.reports import NodeReport, Phase, Progress
from contract.search import Search, SearchPrefix
from page_writer.policy import CLOCK_S, PageKind
from page_writer.writing import locate
from pages.facts import GridFacts, JobFacts, SearchFacts
from tests.builders import INTENT, JOB, NODE_ROLE
from tests.fakes.aws import Aws
from tests.fakes.events import Event
from tests.fakes.executions import GRID_MACHINE, MACHINE, SEARCH_MACHINE, Execution
from tests.fakes.faults import Mishap
from tests.fakes.functions import OneByOne, invoked, quiet
from tests.fakes.grid_yard import grid_of, line_of
from tests.fakes.queue import URL
from tests.fakes.s3 import Version
from tests.fakes.state import TABLE, report
from tests.fakes.yard import ABROAD, PLACES, admitted, deployed

NOW = 1_800_000_000.0
TIMEOUT_S, VISIBILITY_S, RECEIVES = 300.0, 1800.0, 30
MACHINES = {PageKind.JOB: MACHINE, PageKind.GRID: GRID_MACHINE, PageKind.SEARCH: SEARCH_MACHINE}
ENVIRONMENT = PageEnvironment(
    deployment="yard",
    table=TABLE,
    bucket=JOB.home_bucket,
    node_role=NODE_ROLE,
    machine=MACHINE,
    grid_machine=GRID_MACHINE,
    search_machine=SEARCH_MACHINE,
    messages=URL,
    again_s=60.0,
)


@dataclass
class Pages:
    """Pages of the account. In place of HTML each has the facts that it would be made of."""

    aws: Aws
    facts: list[Any] = field(default_factory=list)
    """Of every page that was rendered, oldest first."""
    mishaps: list[Sequence[Mishap]] = field(default_factory=list)
    """What befalls the next invocations."""
    ticks: list[Any] = field(default_factory=list)
    """What the clock's invocations ended with."""

    def __post_init__(self) -> None:
        self.aws.queue.feed(lambda event: self.invoke(event).value)
        self.aws.events.targets.append((_of_executions, self.aws.queue.take))

    def invoke(self, event: dict[str, Any]) -> Any:
        mishaps = self.mishaps.pop(0) if self.mishaps else ()
        return invoked(self.aws, page_writer.handler.handler, event, "pages", TIMEOUT_S, mishaps)

    def tick(self) -> str:
        """The clock calls the function. Returns the error with which it ended, empty for none."""
        return str(self.invoke({}).error)

    def start_clock(self) -> None:
        self.aws.events.every(CLOCK_S, lambda _: self.ticks.append(self.tick()))

    def run(self, seconds: float = 10.0) -> None:
        self.aws.clock.run(seconds)

    # what there is

    def begin(self, name: str = JOB.id, machine: str = MACHINE, *, is_heard: bool = True) -> Execution:
        execution = self.aws.states.executions.begin(name, machine)
        if is_heard:
            self.tell(execution)
        return execution

    def tell(self, execution: Execution) -> None:
        """EventBridge tells of the execution's status, as it is now."""
        detail = self.aws.states.executions.detail(execution)
        self.aws.events.publish("aws.states", "Step Functions Execution Status Change", detail)

    def end(self, execution: Execution, status: str = "SUCCEEDED", error: str = "", cause: str = "") -> None:
        self.aws.states.executions.end(execution, status, error or None, cause or None)

    def end_unheard(self, execution: Execution, status: str = "SUCCEEDED") -> None:
        execution.status, execution.ended_at = status, self.aws.clock.now

    def admit(self, name: str = JOB.id, **changes: Any) -> Job:
        """The job of the execution that begins now, as Admit writes it."""
        execution = JOB.execution.replace(JOB.id, name)
        return admitted(self.aws, replace(JOB, id=name, execution=execution, places=ALL_PLACES, **changes))

    def launch(self, job: Job, attempt: int = 1, region: str = JOB.home_region, nodes: int = 2) -> Intent:
        """An attempt is launched on the first rung of the region."""
        ids = tuple(f"i-{attempt}-{rank}" for rank in range(nodes))
        answer = LaunchAnswer(outcome=LaunchOutcome.LAUNCHED, at=self.aws.clock.now, instances=ids)
        step = replace(INTENT.steps[0], rung=replace(INTENT.steps[0].rung, region=region), answer=answer)
        intent = replace(INTENT, job=job.id, attempt=attempt, steps=(step,))
        State(TABLE).create_intent(job, intent)
        return intent

    def hear(self, job: Job, attempt: int = 1, rank: int = 0, **changes: Any) -> NodeReport:
        """A node reports."""
        told = NodeReport(
            job=job.id,
            attempt=attempt,
            rank=rank,
            instance=f"i-{attempt}-{rank}",
            phase=Phase.TRAINING,
            sent_at=self.aws.clock.now,
            progress=Progress(step=10 * attempt, metric=0.5),
        )
        report(self.aws, told := replace(told, **changes))
        return told

    def report(self, kind: PageKind = PageKind.JOB, name: str = JOB.id, **content: Any) -> None:
        """Terminate, Collect or a cleanup writes the report of an end, now."""
        at = {"ended_at" if kind is PageKind.JOB else "reported_at": self.aws.clock.now}
        self.write(locate(kind, name).replace(keys.PAGE, "report.json"), json.dumps({**at, **content}).encode())

    def write(self, key: str, body: bytes) -> None:
        self.aws.s3.write(JOB.home_bucket, key, body)

    def plan(self, records: Sequence[Record] = (), lines: int = 4) -> Grid:
        """The grid `sweep`, planned now, with these records."""
        grid = replace(
            grid_of(lines, [JOB.home_region]),
            execution=f"{GRID_MACHINE.replace(':stateMachine:', ':execution:')}:sweep",
            started_at=_iso(self.aws.clock.now),
        )
        every = [
            replace(line_of(index, JOB.home_region), source={"hyperparameters": {"lr": index}})
            for index in range(lines)
        ]
        self.write(GridPrefix("sweep").lines(0), b"\n".join(map(encode, every)) + b"\n")
        self.write(GridPrefix("sweep").description, encode(grid))
        for one in records:
            self.write(GridPrefix("sweep").record(one.index), encode(one))
        return grid

    def settle(self, given: dict[str, Any]) -> Search:
        """The search `tune`, settled now."""
        search = Search(
            id="tune",
            deployment="yard",
            execution=f"{SEARCH_MACHINE.replace(':stateMachine:', ':execution:')}:tune",
            started_at=_iso(self.aws.clock.now),
            given=given,
        )
        self.write(SearchPrefix("tune").description, encode(search))
        return search

    # what came of it

    def page(self, kind: PageKind = PageKind.JOB, name: str = JOB.id) -> Version | None:
        return self.aws.s3.buckets[JOB.home_bucket].newest(locate(kind, name))

    def count(self, kind: PageKind = PageKind.JOB, name: str = JOB.id) -> int:
        """How often the page was written."""
        return len(self.aws.s3.buckets[JOB.home_bucket].objects.get(locate(kind, name), []))

    @property
    def newest(self) -> Any:
        return self.facts[-1]


ALL_PLACES = {place.region: place for place in PLACES}
AWAY = ABROAD.region


def _of_executions(event: Event) -> bool:
    return bool(event["source"] == "aws.states")


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).isoformat()


@contextmanager
def opened(patch: pytest.MonkeyPatch) -> Iterator[Pages]:
    """A new account, which every client of the function talks to meanwhile."""
    fake = deployed(now=NOW, places=PLACES)
    fake.queue.visibility_s, fake.queue.receives = VISIBILITY_S, RECEIVES
    for name, value in ENVIRONMENT.write().items():
        patch.setenv(name, value)
    found = Pages(fake)

    def render(facts: JobFacts | GridFacts | SearchFacts) -> bytes:
        found.facts.append(facts)
        return repr(facts).encode()

    for name in ("write_job", "write_grid", "write_search"):
        patch.setattr(page_writer.writing, name, render)
    # Mishaps and an invocation's end are a thread's own.
    for module in (page_writer.handler, messages.work, aws.grids, searches.store):
        patch.setattr(module, "ThreadPoolExecutor", OneByOne)
    for module in (page_writer.handler, botocore.endpoint):
        patch.setattr(module, "time", fake.clock)
    with fake.connected(), quiet("page_writer", "cleanup", "checkpoints"):
        yield found
