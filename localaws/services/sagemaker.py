"""SageMaker's training jobs, a region each: names used once for ever, quotas, a pace, lost answers, and jobs that really train.

moto has records that never change.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from localaws.api import Problem, Request, Service
from localaws.conditions import Marks
from localaws.services.ec2 import AMI
from localaws.services.sagemaker_checks import check, invalid
from localaws.services.sagemaker_training import MASTER_PORT, Training

if TYPE_CHECKING:
    from localaws.recorder import Call
    from localaws.server import LocalAws

QUOTA = 40
"""Instances of one type that may be in use at once in a region: enough for ten of each line of the largest example."""
BURST, EVERY_S = 5, 1.0
"""CreateTrainingJob, a region: so many at once, then one in so many seconds. AWS publishes no figure; the rehearsal's speed
does not change it, as it does not change the pace of the grid."""
AT_ONCE = 4
"""Trainings that compute at once on this computer; the others stay in Starting."""
MOST = 100
"""Entries of a page of ListTrainingJobs, at most."""
CREATE = "CreateTrainingJob"
NOT_SHOWN = (
    "SageMaker's instances: each is a process on this computer without GPUs, its /opt/ml a folder; hosts have loopback addresses, as "
    f"their names do not resolve; MASTER_PORT is one that is free here, from {MASTER_PORT} on, as all share one network; FastFile is "
    "downloaded; there is no MPI",
    "images of trainings: each is the folder that it was built from: COPY, WORKDIR, ENV, ENTRYPOINT and CMD of its Dockerfile are "
    "followed, what RUN makes is replaced by the Python with PyTorch of the local machine image",
    f"SageMaker's quotas ({QUOTA} instances a type), its pace ({BURST} creations at once, then one in {EVERY_S:g} s, a region), and its "
    f"size: {AT_ONCE} trainings compute at once",
)
"""What a rehearsed training does not show, for whoever prints a rehearsal's result."""
_current: list[SageMaker] = []


def install(aws: LocalAws) -> None:
    """Fills the gap until `aws.stop()`; `trainings()` has what was created."""
    _current[:] = [SageMaker(aws)]


def trainings() -> list[Training]:
    """Of the local AWS that was installed last, in the order of their creation."""
    return _current[-1].all()


class SageMaker:
    """All training jobs of a local AWS."""

    def __init__(self, aws: LocalAws) -> None:
        self._aws = aws
        self._lock = threading.Lock()
        self._trainings: dict[tuple[str, str], Training] = {}
        self._buckets: dict[str, tuple[float, float]] = {}
        self._lost: set[str] = set()
        self._places = threading.Semaphore(AT_ONCE)
        self._numbers = itertools.count()
        self.quota: dict[str, int] = {}
        """Type to instances, where it is not QUOTA."""
        operations = {
            CREATE: self._create,
            "DescribeTrainingJob": self._describe,
            "StopTrainingJob": self._stop,
            "ListTrainingJobs": self._list,
            "ListTags": self._list_tags,
            "AddTags": self._add_tags,
        }
        Service("sagemaker", invalid="ValidationException", operations=operations).install(aws)
        aws.at_stop(self._end_all)

    def all(self) -> list[Training]:
        with self._lock:
            return list(self._trainings.values())

    def _create(self, call: Call, request: Request) -> Mapping[str, Any]:
        self._pace(call.region)
        marks = _marks(request)
        image = check(self._aws, request, call.region)
        with self._lock:
            key = (call.region, str(request["TrainingJobName"]))
            if key in self._trainings:
                raise Problem(
                    "ResourceInUse",
                    f"Training job names must be unique within an AWS account and region, but {key[1]} already exists",
                )
            self._check_quota(request, call.region, marks)
            training = Training(
                self._aws, request, call.region, image, ami=AMI, addresses=self._address, places=self._places
            )
            self._trainings[key] = training
        threading.Thread(target=training.run, name=training.name, daemon=True).start()
        self._lose_answer(marks, training.arn)
        return {"TrainingJobArn": training.arn}

    def _describe(self, call: Call, request: Request) -> Mapping[str, Any]:
        if self._aws.conditions.now_under("sagemaker-throttled"):
            raise throttled()
        return self._found(call.region, request["TrainingJobName"]).described()

    def _stop(self, call: Call, request: Request) -> Mapping[str, Any]:
        training = self._found(call.region, request["TrainingJobName"])
        if not training.runs:
            raise invalid(f"The request was rejected because the training job is in status {training.status}.")
        training.stop()
        return {}

    def _list(self, call: Call, request: Request) -> Mapping[str, Any]:
        found = [one for one in reversed(self.all()) if one.region == call.region and _fits(one, request)]
        start = int(request.get("NextToken", "0"))
        size = min(request.get("MaxResults", 10), MOST)
        more = {"NextToken": str(start + size)} if len(found) > start + size else {}
        shown = ("TrainingJobName", "TrainingJobArn", "CreationTime", "LastModifiedTime", "TrainingEndTime")
        entries = [one.described() for one in found[start : start + size]]
        names = (*shown, "TrainingJobStatus", "SecondaryStatus")
        return {"TrainingJobSummaries": [{key: one[key] for key in names if key in one} for one in entries], **more}

    def _list_tags(self, call: Call, request: Request) -> Mapping[str, Any]:
        training = self._by_arn(call.region, request["ResourceArn"])
        return {"Tags": [{"Key": key, "Value": value} for key, value in training.tags.items()]}

    def _add_tags(self, call: Call, request: Request) -> Mapping[str, Any]:
        training = self._by_arn(call.region, request["ResourceArn"])
        training.tags |= {one["Key"]: one["Value"] for one in request["Tags"]}
        return self._list_tags(call, request)

    # what is in the way

    def _pace(self, region: str) -> None:
        """A bucket of tokens a region; and the fault `sagemaker-throttled`."""
        with self._lock:
            now = time.monotonic()
            left, at = self._buckets.get(region, (float(BURST), now))
            left = min(float(BURST), left + (now - at) / EVERY_S)
            self._buckets[region] = (left - 1.0 if left >= 1.0 else left, now)
        if left < 1.0 or self._aws.conditions.now_under("sagemaker-throttled"):
            raise throttled()

    def _check_quota(self, request: Request, region: str, marks: Marks) -> None:
        wanted = request["ResourceConfig"]
        kind, count = wanted["InstanceType"], wanted["InstanceCount"]
        used = sum(
            one.instances
            for one in self._trainings.values()
            if one.runs and one.region == region and one.request["ResourceConfig"]["InstanceType"] == kind
        )
        quota, fault = self.quota.get(kind, QUOTA), self._aws.conditions.now_under("quota-reached")
        if fault and fault.meets(marks):
            quota, used = 0, 0
        if used + count > quota:
            raise Problem(
                "ResourceLimitExceeded",
                f"The account-level service limit '{kind} for training job usage' is {quota} Instances, with current "
                f"utilization of {used} Instances and a request delta of {count} Instances. Please use AWS Service Quotas to "
                "request an increase for this quota.",
            )

    def _lose_answer(self, marks: Marks, arn: str) -> None:
        if self._aws.conditions.fault("create-response-lost", marks) and arn not in self._lost:
            self._lost.add(arn)
            raise Problem("InternalFailure", "The answer was lost on its way.", 500)

    def _found(self, region: str, name: str) -> Training:
        with self._lock:
            training = self._trainings.get((region, name))
        if training is None:
            raise invalid("Requested resource not found.")
        return training

    def _by_arn(self, region: str, arn: str) -> Training:
        return self._found(region, arn.rpartition("/")[2])

    def _address(self) -> str:
        """Each instance has one of its own; nodes of EC2 begin at 127.16."""
        number = next(self._numbers)
        return f"127.{2 + number // 65536 % 14}.{number // 256 % 256}.{number % 256}"

    def _end_all(self) -> None:
        for training in self.all():
            training.vanish()
        deadline = time.monotonic() + 10
        while any(one.code is None for training in self.all() for one in training.containers):
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)


def throttled() -> Problem:
    return Problem("ThrottlingException", "Rate exceeded")


def _marks(request: Request) -> dict[str, str]:
    """Its tags."""
    return {one["Key"]: one["Value"] for one in request.get("Tags", [])}


def _fits(training: Training, request: Request) -> bool:
    def all_of() -> Iterator[bool]:
        yield request.get("NameContains", "").lower() in training.name.lower()
        yield request.get("StatusEquals") in (None, training.status)
        yield training.created >= float(request.get("CreationTimeAfter", 0))
        yield training.created <= float(request.get("CreationTimeBefore", "inf"))

    return all(all_of())
