"""A planned grid on the fake, with the functions that collect, stop and clean it up, and the jobs that Submit would make."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from contract import names, tags
from contract.codec import decode, encode
from contract.environments import GridCleanupEnvironment, GridDefaults
from contract.grid import GridPrefix, Record
from contract.records import record_of
from contract.timings import CollectTiming
from contract.training_facts import describe_training
from localaws.services.sagemaker_jobs import Training
from localaws.services.sagemaker_planned import Life
from tests.builders import GRID_LIMITS
from tests.builders import LIMITS as JOB_LIMITS
from tests.fakes.aws import Aws
from tests.fakes.events import Event
from tests.fakes.executions import GRID_MACHINE, MACHINE, Execution
from tests.fakes.faults import Mishap
from tests.fakes.functions import Functions, Outcome
from tests.fakes.grid_yard import BUCKET, DEPLOYMENT, EXECUTION, HOME, NOW, REGIONS, GridYard, grid_of, line_of
from tests.fakes.queue import URL
from tests.fakes.s3 import Bucket
from tests.fakes.state import TABLE

PREFIX = GridPrefix("sweep")
TOPIC = "arn:aws:sns:eu-central-1:123456789012:yard-topic"
QUEUE = names.grid_queue(DEPLOYMENT)
LIMITS = dataclasses.replace(GRID_LIMITS, submissions_per_second=2.0)
SETTLED_S = 3600.0
"""Longer than any training of the tests lives."""


@dataclass
class Yard(GridYard):
    """The grid `sweep`, whose execution runs."""

    functions: Functions = field(kw_only=True)
    execution: Execution = field(kw_only=True)

    # What children would have done

    def train(self, *indices: int, life: Life | None = None, marks: Mapping[str, str] | None = None) -> list[Training]:
        """Trainings that run since now; `marks` over their tags."""
        made = []
        for index in indices:
            there, request = self.sagemaker(index), self.lines[index].request
            there.life = lambda _: life or Life()
            usual = {one["Key"]: one["Value"] for one in request["Tags"]} | dict(marks or {})
            made.append(there.add(request | {"Tags": [{"Key": key, "Value": value} for key, value in usual.items()]}))
        return made

    def settle(self, seconds: float = SETTLED_S) -> None:
        self.aws.clock.run(seconds)

    def record_all(self, *indices: int) -> None:
        """Their children wrote what SageMaker says of their trainings."""
        for index in indices:
            training = self.trained(index)
            record = record_of(
                self.lines[index], describe_training(self.lines[index], training.described(self.aws.clock.now))
            )
            self.put(PREFIX.record(index), encode(record))

    def complete(self, *indices: int) -> None:
        """From begin to end, all of it."""
        self.train(*indices)
        self.settle()
        self.record_all(*indices)

    def submit(self, grid: str = "sweep", execution: str = EXECUTION) -> str:
        """An array of the grid, as Submit makes it."""
        job = f"array-{len(self.aws.batch.jobs)}"
        marks = {tags.DEPLOYMENT: DEPLOYMENT, tags.GRID: grid, tags.EXECUTION: execution}
        self.aws.batch.add(job, name=f"grid-{grid}-r1-0", queue=QUEUE, children=2, tags=marks)
        return job

    # Doors

    def collect(
        self, round_: int = 1, told: Sequence[Mapping[str, Any]] = (), mishaps: Sequence[Mishap] = ()
    ) -> Outcome:
        event = {"action": "collect", "grid": "sweep", "round": round_, "ended": list(told)}
        return self.functions.invoke("grid_collect", event, mishaps)

    def stop_grid(self, problem: Mapping[str, str] | None = None, mishaps: Sequence[Mishap] = ()) -> Outcome:
        event = {"action": "stop", "grid": "sweep", "problem": dict(problem) if problem else None}
        return self.functions.invoke("grid_collect", event, mishaps)

    def stop_until_over(self, problem: Mapping[str, str] | None = None) -> Outcome:
        """As the machine asks: again and again, whatever the error is."""
        for _ in range(60):
            outcome = self.stop_grid(problem)
            if not outcome.error:
                return outcome
            self.aws.clock.run(self.timing.grid_collect_again_s)
        raise AssertionError(f"the stop is never over: {outcome}")

    def collect_beside(self) -> None:
        """A whole collection, in the middle of another one."""
        self.collect()

    def stop_beside(self) -> None:
        self.stop_grid({"error": "GridFailed", "cause": "it went wrong"})

    def report(self, totals: Mapping[str, Any], problem: Mapping[str, str] | None = None) -> Outcome:
        event = {"action": "report", "grid": "sweep", "totals": dict(totals), "problem": problem}
        return self.functions.invoke("grid_collect", event)

    def end(self, status: str = "ABORTED", error: str | None = None, cause: str | None = None) -> None:
        """The execution ends, and its event goes its way."""
        self.aws.states.executions.end(self.execution, status, error, cause)

    # What is there

    def text(self, key: str) -> str:
        body = self.aws.s3.read(BUCKET, key)
        assert body is not None, key
        return body.decode()

    def table(self) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.text(PREFIX.results_csv), newline="")))

    def json_lines(self, key: str) -> list[Any]:
        return [json.loads(line) for line in self.text(key).splitlines()]

    def records(self) -> dict[int, Record]:
        live = self.aws.s3.buckets[BUCKET].live()
        found = {key: one.body for key, one in live.items() if key.startswith(PREFIX.records)}
        return {record.index: record for record in (decode(Record, body) for body in found.values())}

    def alive(self) -> list[Training]:
        return [one for region in REGIONS for one in self.aws.sagemaker(region).alive()]

    def changes(self) -> list[str]:
        """Calls that changed something outside of the home bucket."""
        quiet = ("Describe", "List", "Get", "Head", "Put")
        return [call.name for call in self.aws.calls if not call.operation.startswith(quiet)]


@contextmanager
def collected(lines: int = 4, regions: Sequence[str] = REGIONS) -> Iterator[Yard]:
    """A grid of some lines of which nothing was submitted yet."""
    aws = Aws(now=NOW)
    aws.s3.buckets[BUCKET] = Bucket(region=HOME)
    aws.batch.open(QUEUE)
    functions = Functions(aws, bucket=BUCKET, deployment=DEPLOYMENT)
    made = Yard(
        aws,
        grid_of(lines, regions),
        [line_of(index, regions) for index in range(lines)],
        functions=functions,
        execution=aws.states.executions.begin("sweep", GRID_MACHINE),
    )
    environment = GridCleanupEnvironment(
        deployment=DEPLOYMENT,
        bucket=BUCKET,
        table=TABLE,
        account="123456789012",
        suffix="amazonaws.com",
        home_region=HOME,
        regions=tuple(REGIONS),
        repositories=("images",),
        base_accounts={},
        data_buckets=(),
        training_role="arn:aws:iam::123456789012:role/yard-training-eu-central-1",
        machine=GRID_MACHINE,
        queue=QUEUE,
        child_image="grid-child-1",
        limits=LIMITS,
        job_limits=JOB_LIMITS,
        train_machine=MACHINE,
        defaults=GridDefaults(image="", instance_type=""),
        timing=made.timing.of(CollectTiming),
        topic=TOPIC,
        messages=URL,
    ).write()
    functions.own = {"grid_collect": environment, "grid_cleanup": environment}
    made.write()
    with functions.installed():
        yield made


def cleaned_up(yard: Yard) -> None:
    """The grid stack's rule on executions of its machine that ended badly, its queue, and the function behind it."""

    def fits(event: Event) -> bool:
        detail = event["detail"]
        return event["source"] == "aws.states" and detail["status"] in {"FAILED", "TIMED_OUT", "ABORTED"}

    yard.aws.events.targets.append((fits, yard.aws.queue.take))
    yard.aws.queue.feed(lambda event: yard.functions.invoke("grid_cleanup", event).value)
