"""A planned grid on the fake AWS, and the children that Batch would start for it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from contract import tags
from contract.codec import decode, encode
from contract.environments import ChildEnvironment
from contract.grid import (
    SHARD,
    Backend,
    Grid,
    GridPrefix,
    Line,
    Manifest,
    Record,
    mpi_job_name,
    training_name,
)
from contract.jobs import Launcher
from contract.mpi_job import PodPlace, PodTraining, build_mpi_job, describe_files
from contract.names import cluster_function, pod_namespace
from contract.timing import Timing
from contract.timings import ChildTiming
from grid_child.identity import ATTEMPT, INDEX, JOB
from grid_child.main import main
from grid_child.waits import Waits
from localaws.services.sagemaker_jobs import Training
from localaws.services.sagemaker_planned import Planned
from tests.fakes.aws import Aws
from tests.fakes.executions import MACHINE, Execution
from tests.fakes.faults import Mishap
from tests.fakes.kubernetes import NAME as CLUSTER
from tests.fakes.s3 import Bucket

NOW = 1_800_000_000.0
DEPLOYMENT = "yard"
BUCKET = "yard-home-123456789012-eu-central-1"
BYTES = "yard-bytes-123456789012-eu-central-1"
HOME = "eu-central-1"
MOST_NODES = 1000
"""Of the cluster, for all lines together."""
REGIONS = ("eu-central-1", "eu-west-1", "us-east-1", "us-west-2")
EXECUTION = "arn:aws:states:eu-central-1:123456789012:execution:yard-grid:sweep"
STARTED = "2027-01-15T08:00:00.000Z"
BATCH_JOB = "0f5c7f9e-1111-4222-8333-444455556666"
PREFIX = GridPrefix("sweep")


def grid_of(lines: int, regions: Sequence[str], pace: float = 2.0, planned_at: float = NOW) -> Grid:
    counts = {region: len(range(place, lines, len(regions))) for place, region in enumerate(regions)}
    return Grid(
        id="sweep",
        deployment=DEPLOYMENT,
        execution=EXECUTION,
        started_at=STARTED,
        owner="ada",
        planned_at=planned_at,
        manifest=Manifest(bucket=BUCKET, key="uploads/sweep.csv", version="1", etag="e"),
        lines=lines,
        regions={region: count for region, count in counts.items() if count},
        pace=pace,
        cost_at_most_usd=None,
    )


def request_of(index: int, region: str, **changes: Any) -> dict[str, Any]:
    """A request as Plan writes it."""
    marks = {
        tags.DEPLOYMENT: DEPLOYMENT,
        tags.GRID: "sweep",
        tags.LINE: str(index),
        tags.EXECUTION: EXECUTION,
        tags.OWNER: "ada",
    }
    request: dict[str, Any] = {
        "TrainingJobName": training_name(DEPLOYMENT, EXECUTION, STARTED, index),
        "AlgorithmSpecification": {"TrainingImage": "123456789012.dkr.ecr/yard/images:1", "TrainingInputMode": "File"},
        "RoleArn": "arn:aws:iam::123456789012:role/yard-training-eu-central-1",
        "OutputDataConfig": {"S3OutputPath": f"s3://yard-bytes-123456789012-{region}/{PREFIX.bytes(index)}"},
        "ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 86_400},
        "HyperParameters": {"lr": "0.1"},
        "Tags": [{"Key": key, "Value": value} for key, value in marks.items()],
    }
    return request | changes


def job_line_of(index: int, slot: int = 0) -> Line:
    """A line on clusters of our own, as Plan writes it."""
    request = {
        "instance_types": ["g5.xlarge"],
        "image": "images:1",
        "grid_line": {"execution": EXECUTION, "index": index},
    }
    return Line(
        index=index,
        line=index + 1,
        region=HOME,
        why="not known before it starts",
        slot=slot,
        request={
            "stateMachineArn": MACHINE,
            "name": training_name(DEPLOYMENT, EXECUTION, STARTED, index),
            "input": json.dumps(request, sort_keys=True),
        },
        source={"backend": "ec2"},
        backend=Backend.EC2,
    )


def pod_line_of(index: int, slot: int = 0, *, nodes: int = 2, **changes: Any) -> Line:
    """A line on Kubernetes, as Plan writes it."""
    name, folder = mpi_job_name(EXECUTION, STARTED, index), f"s3://{BYTES}/{PREFIX.bytes(index)}"
    arguments = request_of(index, HOME, **changes) | {
        "CheckpointConfig": {"S3Uri": f"{folder}checkpoints"},
        "ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": nodes, "VolumeSizeInGB": 30},
    }
    notes = f"s3://{BYTES}/{PREFIX.pod_notes(index)}"
    it = PodTraining(name=name, command=("python", "train.py"), launcher=Launcher.MPI, gpus=1, notes=notes)
    place = PodPlace(
        cluster=CLUSTER, namespace=pod_namespace(DEPLOYMENT), region=HOME, keeper_image="platform:child-1", port=29500
    )
    return Line(
        index=index,
        line=index + 1,
        region=HOME,
        why="named",
        slot=slot,
        request={
            "name": name,
            "cluster": CLUSTER,
            "namespace": place.namespace,
            "function": cluster_function(DEPLOYMENT),
            "most_nodes": MOST_NODES,
            "notes": notes,
            "model": describe_files(arguments, it).model,
            "job": build_mpi_job(arguments, it, place),
        },
        source={"backend": "kubernetes"},
        hourly_usd=2.0,
        backend=Backend.KUBERNETES,
    )


def line_of(index: int, regions: Sequence[str] = REGIONS, **changes: Any) -> Line:
    region = regions[index % len(regions)]
    request = request_of(index, region, **changes)
    return Line(
        index=index,
        line=index + 1,
        region=region,
        why="the manifest says so",
        slot=index // len(regions),
        request=request,
        source={"region": region},
        hourly_usd=2.0,
    )


@dataclass
class GridYard:
    """A grid of some lines, planned just now."""

    aws: Aws
    grid: Grid
    lines: list[Line]
    timing: Timing = field(default_factory=Timing)

    def put(self, key: str, body: bytes) -> None:
        self.aws.s3.write(BUCKET, key, body)

    def write(self) -> None:
        """As Plan does: the lines, shard by shard, then the grid."""
        for first in range(0, len(self.lines), SHARD):
            shard = b"\n".join(encode(line) for line in self.lines[first : first + SHARD]) + b"\n"
            self.put(PREFIX.lines(first), shard)
        self.put(PREFIX.description, encode(self.grid))

    def variables(self, place: int = 0, *, attempt: int = 1, round_: int = 1, first: int = 0) -> dict[str, str]:
        """As the job definition, the array and Batch set them. A grid of one line is a plain job."""
        environment = ChildEnvironment(
            deployment=DEPLOYMENT,
            bucket=BUCKET,
            home_region=HOME,
            timing=self.timing.of(ChildTiming),
            grid="sweep",
            first=first,
            round=round_,
        ).write()
        plain = len(self.lines) == 1
        batch = {JOB: BATCH_JOB if plain else f"{BATCH_JOB}:{place}", ATTEMPT: str(attempt)}
        return environment | batch | ({} if plain else {INDEX: str(place)})

    def run(
        self,
        place: int = 0,
        *,
        changes: Mapping[str, str | None] | None = None,
        mishaps: Sequence[Mishap] = (),
        waits: Waits | None = None,
        seed: int = 0,
        **named: int,
    ) -> int:
        """One child from its start to its end. `changes` of the environment: None takes a variable away."""
        variables = self.variables(place, **named) | {k: v for k, v in (changes or {}).items() if v is not None}
        for name, value in (changes or {}).items():
            if value is None:
                variables.pop(name, None)
        self.aws.mishaps.append(mishaps)
        try:
            return int(main(variables, waits=waits or Waits(self.aws.clock), chance=random.Random(seed)))
        finally:
            self.aws.mishaps.pop()

    def sagemaker(self, index: int = 0) -> Planned:
        return self.aws.sagemaker(self.lines[index].region)

    def training(self, index: int = 0) -> Training | None:
        return self.sagemaker(index).trainings.get(self.lines[index].training)

    def begin(self, index: int) -> None:
        """The execution of a line on clusters of our own begins, as its child starts it."""
        self.aws.states.executions.start(self.lines[index].request)

    def job(self, index: int = 0) -> Execution | None:
        """The execution of a line on clusters of our own."""
        arn = f"{MACHINE.replace(':stateMachine:', ':execution:')}:{self.lines[index].training}"
        return self.aws.states.executions.known.get(arn)

    def pod_job(self, index: int = 0) -> dict[str, Any] | None:
        """The MPIJob of a line on Kubernetes."""
        return self.aws.cluster.jobs.get((pod_namespace(DEPLOYMENT), self.lines[index].training))

    def record(self, index: int = 0) -> Record | None:
        body = self.aws.s3.read(BUCKET, PREFIX.record(index))
        return None if body is None else decode(Record, body)

    def trained(self, index: int = 0) -> Training:
        """The training, which is there."""
        found = self.training(index)
        assert found is not None
        return found

    def recorded(self, index: int = 0) -> Record:
        """The record, which is there."""
        found = self.record(index)
        assert found is not None
        return found

    def calls(self, operation: str) -> int:
        """How many calls of an operation had an effect or an answer."""
        return sum(call.operation == operation for call in self.aws.calls)

    def stop(self) -> None:
        """As Stop begins."""
        self.put(PREFIX.stopped, json.dumps({"reason": "said the test"}).encode())

    def at(self, seconds: float, action: Callable[[], None]) -> None:
        """`action` happens so long from now, whatever the child does then."""
        self.aws.clock.at(self.aws.clock.now + seconds, action)


def sigterm(yard: GridYard, after_s: float) -> Waits:
    """A process' waits, to which SIGTERM comes so long from now."""
    waits = Waits(yard.aws.clock)
    yard.at(after_s, waits.called)
    return waits


@contextmanager
def planned(
    lines: int = 1, *, regions: Sequence[str] = REGIONS, pace: float = 2.0, **request: Any
) -> Iterator[GridYard]:
    """A grid on the fake, whose clients are connected."""
    aws = Aws(now=NOW)
    aws.s3.buckets[BUCKET] = Bucket(region=HOME)
    yard = GridYard(aws, grid_of(lines, regions, pace), [line_of(index, regions, **request) for index in range(lines)])
    yard.write()
    with aws.connected():
        yield yard
