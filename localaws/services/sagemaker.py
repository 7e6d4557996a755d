"""SageMaker's training jobs over HTTP, per region: the model with a real clock, and jobs that really train.

moto only has records that never change.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from localaws.api import Request, Service
from localaws.model import Refused, Tokens
from localaws.services.ec2 import AMI
from localaws.services.sagemaker_checks import check
from localaws.services.sagemaker_jobs import Training
from localaws.services.sagemaker_model import CREATE, DESCRIBE, Begin, SageMaker, throttled
from localaws.services.sagemaker_run import MASTER_PORT, Run

if TYPE_CHECKING:
    from localaws.server import LocalAws

QUOTA = 40
"""Instances of one type that may run at once in a region: enough for ten of each line of the largest example."""
BURST, EVERY_S = 5, 1.0
"""Token bucket of CreateTrainingJob per region: so many at once, then one every EVERY_S seconds. AWS publishes no figure; the
rehearsal's speed changes neither this nor the pace of the grid."""
AT_ONCE = 4
"""Trainings that compute at once on this computer; the others stay in Starting."""
NOT_SHOWN = (
    "SageMaker's instances: each is a process on this computer without GPUs, its /opt/ml a folder; hosts have loopback addresses, as "
    f"their names do not resolve; MASTER_PORT is one that is free here, from {MASTER_PORT} on, as all share one network; FastFile is "
    "downloaded",
    "AWS's ssh daemon between the hosts of a training under mpirun: a call runs the command in the other host's own container, under the "
    "address of each host; Open MPI is that of the image, of which 5 gets --bind-to and --map-by with two dashes: the toolkit's own words, "
    "with one, are those of Open MPI 4, which AWS's containers have",
    f"SageMaker's quotas ({QUOTA} instances a type), its pace ({BURST} creations at once, then one in {EVERY_S:g} s, a region), and its "
    f"size: {AT_ONCE} trainings compute at once",
    "images of trainings: each is the folder that it was built from: COPY, WORKDIR, ENV, ENTRYPOINT and CMD of its Dockerfile are "
    "followed, what RUN makes is replaced by the Python with PyTorch of the local machine image",
)
"""What a rehearsed training does not show, for the printed result of a rehearsal."""
_current: list[Trainings] = []


def install(aws: LocalAws) -> None:
    """Installs the model until `aws.stop()`; `trainings()` returns what was created."""
    _current[:] = [Trainings(aws)]


def trainings() -> list[Run]:
    """Lists the trainings of the local AWS that was installed last, in the order of their creation."""
    return list(_current[-1].runs)


def here(region: str) -> Region:
    """Returns a region of the local AWS that was installed last."""
    return _current[-1].service.of(region)


class Region(SageMaker):
    """Runs created trainings as processes, and applies the requested faults."""

    def __init__(self, region: str, owner: Trainings, aws: LocalAws) -> None:
        super().__init__(region, time, aws.account)
        self._owner, self._aws = owner, aws
        self._lost: set[str] = set()
        self.limits[CREATE] = Tokens(rate=1 / EVERY_S, burst=BURST)

    def answer(self, operation: str, params: Request) -> dict[str, Any]:
        conditions = self._aws.conditions
        if operation in (CREATE, DESCRIBE) and conditions.now_under("sagemaker-throttled"):
            raise throttled()
        answer = super().answer(operation, params)
        if operation == CREATE and params["TrainingJobName"] not in self._lost:
            marks = {one["Key"]: one["Value"] for one in params.get("Tags", [])}
            if conditions.fault("create-response-lost", marks):
                self._lost.add(params["TrainingJobName"])
                raise Refused("InternalFailure", "The answer was lost on its way.", 500)
        return answer

    def prepared(self, request: Request) -> Begin:
        return partial(self._owner.begin, self.region, check(self._aws, request, self.region))

    def end(self, training: Training, left: str) -> None:  # noqa: ARG002
        next(one for one in self._owner.runs if one.training is training).stop.set()

    def quota(self, training: Training) -> int | None:
        fault = self._aws.conditions.now_under("quota-reached")
        return 0 if fault and fault.meets(training.tags) else super().quota(training) or QUOTA


class Trainings:
    """Holds all training jobs of a local AWS."""

    def __init__(self, aws: LocalAws) -> None:
        self._aws = aws
        self._places = threading.Semaphore(AT_ONCE)
        self.runs: list[Run] = []
        self.service = Service(
            aws, "sagemaker", lambda region: Region(region, self, aws), invalid="ValidationException"
        )
        aws.at_stop(self._end_all)

    def begin(self, region: str, image: str, training: Training) -> None:
        run = Run(self._aws, training, region, image, ami=AMI, addresses=self._aws.addresses.take, places=self._places)
        self.runs.append(run)
        threading.Thread(target=run.run, name=training.name, daemon=True).start()

    def _end_all(self) -> None:
        for run in self.runs:
            run.vanish()
        deadline = time.monotonic() + 10
        while any(one.code is None for run in self.runs for one in run.containers):
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
