"""A grid in the rehearsed account: data and manifest in a person's places, the execution, and its results."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from contract import names, tags
from contract.codec import decode
from contract.grid import Backend, Grid, GridPrefix, Line, LineOutcome, Record
from localaws.services import batch, sagemaker
from localaws.services.batch_jobs import Job as BatchJob
from localaws.services.sagemaker_run import Run
from rehearsal.deployment import ACCOUNT
from rehearsal.yard import StartedJob, Yard

PLACEHOLDER = "REPLACE-WITH-ACCOUNT"
"""Placeholder for the person's account in the names of buckets in an example's manifest."""
UPLOADS = "uploads/"


class GridJob(StartedJob):
    """One execution of the Grid machine, as the console, the bucket and the services show it."""

    @property
    def prefix(self) -> GridPrefix:
        return GridPrefix(self.name)

    def plan(self) -> Grid | None:
        """The plan; None before Plan has written it."""
        body = self.read(self.prefix.description)
        return decode(Grid, body) if body else None

    def lines(self) -> list[Line]:
        """All lines of the plan; empty before it is written."""
        if (plan := self.plan()) is None:
            return []
        keys = dict.fromkeys(self.prefix.lines(index) for index in range(plan.lines))
        return [decode(Line, line) for key in keys for line in (self.read(key) or b"").splitlines()]

    def records(self) -> list[Record]:
        """Records of the lines that have one by now."""
        found = self._listed(self.yard.places.home, self.prefix.records)
        return [decode(Record, self.read(key) or b"") for key in found]

    def results(self) -> list[Record]:
        """The records of results.jsonl; empty if the grid has none."""
        return [decode(Record, line) for line in (self.read(self.prefix.results_jsonl) or b"").splitlines()]

    def read(self, key: str) -> bytes | None:
        """Returns an object of the home bucket; None if it does not exist."""
        s3 = self.yard.client("s3")
        try:
            body: bytes = s3.get_object(Bucket=self.yard.places.home, Key=key)["Body"].read()
        except s3.exceptions.NoSuchKey:
            return None
        return body

    def described(self) -> dict[int, dict[str, Any]]:
        """Returns SageMaker's description of each line's training, in the line's region; lines without a training are left out."""
        found = {}
        for line in self.lines():
            if line.backend is not Backend.SAGEMAKER:
                continue
            client = self.yard.client("sagemaker", line.region)
            try:
                found[line.index] = client.describe_training_job(TrainingJobName=line.training)
            except client.exceptions.ClientError:
                continue  # the line has no training, or none yet
        return found

    def progress(self) -> Counter[str]:
        """Counts lines by state: the secondary status of the training, or how the line ended."""
        outcomes = {record.index: record.outcome.value for record in self.records()}
        states = {index: str(one["SecondaryStatus"]) for index, one in self.described().items()}
        states |= {index: f"job {job.describe()['status']}" for index, job in self.jobs().items()}
        plan = self.plan()
        return Counter(outcomes.get(i) or states.get(i) or "waiting" for i in range(plan.lines if plan else 0))

    def jobs(self) -> dict[int, StartedJob]:
        """Returns the execution of each line on clusters that has one by now."""
        lines = {line.training: line for line in self.lines() if line.backend is Backend.EC2}
        if not lines:
            return {}
        pages = (
            self.yard.client("stepfunctions")
            .get_paginator("list_executions")
            .paginate(stateMachineArn=next(iter(lines.values())).request["stateMachineArn"])
        )
        found = [one for page in pages for one in page["executions"] if one["name"] in lines]
        return {lines[one["name"]].index: StartedJob(self.yard, one["name"], one["executionArn"]) for one in found}

    def trainings(self) -> list[Run]:
        """Lists every training that SageMaker ever had for this grid, in all regions."""
        return [one for one in sagemaker.trainings() if one.training.tags.get(tags.GRID) == self.name]

    def children(self) -> list[BatchJob]:
        """Lists every job of this grid that ever ran on Batch."""
        return [one for one in batch.jobs() if one.submitted.tags.get(tags.GRID) == self.name and one.attempts]

    def trainings_left(self) -> list[str]:
        """Names of trainings that still run anywhere, of any grid or of none."""
        return [one.training.name for one in sagemaker.trainings() if one.runs]

    def children_left(self) -> list[str]:
        return [one.id for one in batch.jobs() if one.status not in ("SUCCEEDED", "FAILED")]

    def instances_left(self) -> int:
        """Counts the instances of its lines that have not begun to end, in all regions of the deployment."""
        wanted = [
            {"Name": f"tag:{tags.GRID}", "Values": [self.name]},
            {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]},
        ]
        regions = [place["region"] for place in self.yard.context["trainyard"]["regions"]]
        pagers = [self.yard.client("ec2", region).get_paginator("describe_instances") for region in regions]
        pages = [page for pager in pagers for page in pager.paginate(Filters=wanted)]
        return sum(len(some["Instances"]) for page in pages for some in page["Reservations"])

    def processes_left(self) -> int:
        """Counts the processes of trainings and children on this computer."""
        containers = [container for one in sagemaker.trainings() for container in one.containers]
        tasks = [attempt.container for one in batch.jobs() for attempt in one.attempts if attempt.container]
        return sum(one.code is None for one in (*containers, *tasks))

    def settle_grid(self, limit_s: float) -> None:
        """Waits until nothing of the grid runs: the reaper, the last layer, may still be at work."""
        until = time.monotonic() + limit_s
        while time.monotonic() < until and (
            self.trainings_left() or self.children_left() or self.processes_left() or self.instances_left()
        ):
            time.sleep(0.1)


def machine(yard: Yard) -> str:
    """ARN of the Grid machine."""
    name = names.grid_machine(yard.context["trainyard"]["deployment"])
    return f"arn:aws:states:{yard.region}:{ACCOUNT}:stateMachine:{name}"


def start(yard: Yard, request: Mapping[str, Any], name: str) -> GridJob:
    """Starts an execution with the request as its input."""
    return GridJob(yard, name, yard.execute(machine(yard), request, name))


def upload_manifest(yard: Yard, text: str, name: str) -> str:
    """Uploads a manifest as a person would, with the account's number in place of the placeholder; returns its address."""
    key = f"{UPLOADS}{name}"
    body = text.replace(PLACEHOLDER, ACCOUNT).encode()
    yard.client("s3").put_object(Bucket=yard.places.home, Key=key, Body=body)
    return f"s3://{yard.places.home}/{key}"


def upload_data(yard: Yard, folder: Path) -> dict[str, str]:
    """Uploads each subfolder named after a region of the deployment to the bucket of bytes there; returns addresses by region."""
    found, regions = {}, {place["region"] for place in yard.context["trainyard"]["regions"]}
    for region in sorted(path.name for path in folder.iterdir() if path.name in regions):
        bucket = names.bytes_bucket(yard.context["trainyard"]["deployment"], ACCOUNT, region)
        for file in sorted(path for path in (folder / region).rglob("*") if path.is_file()):
            key = f"{UPLOADS}{folder.name}/{file.relative_to(folder / region).as_posix()}"
            yard.client("s3", region).put_object(Bucket=bucket, Key=key, Body=file.read_bytes())
        found[region] = f"s3://{bucket}/{UPLOADS}{folder.name}/"
    return found


def build_image(yard: Yard, folder: Path, limit_s: float = 900.0) -> dict[str, Any]:
    """Has the Build machine bring the folder's image into every region, as its build.json asks; returns the execution's output. Raises
    RuntimeError if the build fails."""
    request = json.loads((folder / "build.json").read_text())
    name = f"build-{re.sub('[^a-z0-9]+', '-', folder.name)}-{time.time_ns()}"
    request["context"] = yard.upload(folder, name)
    machine_arn = machine(yard).rpartition(":")[0] + f":{names.build_machine(yard.context['trainyard']['deployment'])}"
    ended = StartedJob(yard, name, yard.execute(machine_arn, request, name)).wait(limit_s)
    if ended["status"] != "SUCCEEDED":
        raise RuntimeError(f"the image of {folder} was not built: {ended.get('cause', ended['status'])}")
    output: dict[str, Any] = json.loads(ended["output"])
    return output


@dataclass(frozen=True, slots=True, kw_only=True)
class GridSummary:
    """`rehearsal/out/summary.json` of a grid."""

    grid: str
    status: str
    lines: int
    regions: dict[str, int]
    outcomes: dict[str, int]
    trainings: int
    """Trainings that SageMaker ever had, in all regions together."""
    jobs: int
    """Executions of the Train machine."""
    interruptions: int
    children: int
    attempts: int
    """Attempts of children, including retries."""
    trainings_left: list[str]
    children_left: list[str]
    processes_left: int
    instances_left: int
    astray: list[str]
    """Artifacts that are not in their line's region."""
    state_path: list[str]
    execution_s: float
    wall_s: float
    error: str = ""
    cause: str = ""
    results: list[dict[str, Any]] = field(default_factory=list)


def summarise(job: GridJob, *, wall_s: float) -> GridSummary:
    """Reads everything back from the places that the product's documentation names."""
    execution, results, plan = job.describe(), job.results(), job.plan()
    trainings, ran = job.trainings(), job.children()
    begun = execution["startDate"].timestamp()
    return GridSummary(
        grid=job.name,
        status=execution["status"],
        lines=plan.lines if plan else 0,
        regions=plan.regions if plan else {},
        outcomes=dict(Counter(record.outcome.value for record in results)),
        trainings=len(trainings),
        jobs=len(job.jobs()),
        interruptions=sum(one.interruptions for one in trainings),
        children=len(ran),
        attempts=sum(len(one.attempts) for one in ran),
        trainings_left=job.trainings_left(),
        children_left=job.children_left(),
        processes_left=job.processes_left(),
        instances_left=job.instances_left(),
        astray=[record.artifact for record in results if not _at_home(job.yard, record)],
        state_path=job.states(),
        execution_s=round(execution.get("stopDate", execution["startDate"]).timestamp() - begun, 1),
        wall_s=round(wall_s, 1),
        error=execution.get("error", ""),
        cause=execution.get("cause", ""),
        results=[asdict(record) for record in results],
    )


def shortcomings(summary: GridSummary) -> list[str]:
    """Returns why a rehearsed grid is not a success, a line per reason; empty if all is as promised."""
    lines = []
    if summary.status != "SUCCEEDED":
        lines.append(f"the execution ended as {summary.status} ({summary.error})")
    if summary.outcomes != {LineOutcome.COMPLETED.value: summary.lines}:
        lines.append(f"of {summary.lines} lines the results say {summary.outcomes or 'nothing'}")
    if summary.trainings + summary.jobs != summary.lines:
        lines.append(f"{summary.lines} lines, and there were {summary.trainings} trainings and {summary.jobs} jobs")
    for what, left in (("trainings", summary.trainings_left), ("children", summary.children_left)):
        if left:
            lines.append(f"{what} are left: {', '.join(left)}")
    if summary.processes_left:
        lines.append(f"{summary.processes_left} processes are left")
    if summary.instances_left:
        lines.append(f"{summary.instances_left} instances are left")
    if summary.astray:
        lines.append(f"artifacts are missing from their line's region: {', '.join(summary.astray)}")
    return lines


def _at_home(yard: Yard, record: Record) -> bool:
    """Whether the record's artifact exists in the bucket of its line's region."""
    if not record.artifact:
        return record.outcome is not LineOutcome.COMPLETED
    bucket, _, key = record.artifact.removeprefix("s3://").partition("/")
    s3 = yard.client("s3", record.region)
    if bucket != names.bytes_bucket(yard.context["trainyard"]["deployment"], ACCOUNT, record.region):
        return False
    listed = s3.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1)
    return bool(listed.get("KeyCount"))
