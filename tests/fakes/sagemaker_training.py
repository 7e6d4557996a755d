"""One training job of the fake SageMaker: its states are a function of time, so that nobody has to move it along."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from itertools import pairwise
from typing import Any

ENDED = frozenset({"Completed", "Failed", "Stopped"})
SIGKILL_S = 120.0
"""From SIGTERM to SIGKILL."""
ECHOED = (
    "HyperParameters",
    "AlgorithmSpecification",
    "RoleArn",
    "InputDataConfig",
    "OutputDataConfig",
    "ResourceConfig",
    "VpcConfig",
    "StoppingCondition",
    "EnableNetworkIsolation",
    "EnableInterContainerTrafficEncryption",
    "EnableManagedSpotTraining",
    "CheckpointConfig",
    "Environment",
    "RetryStrategy",
)
"""Members of the request that DescribeTrainingJob says again."""


@dataclass(frozen=True, slots=True)
class Life:
    """What a training is going to do. Seconds."""

    starting_s: float = 180.0
    downloading_s: float = 30.0
    training_s: float = 600.0
    uploading_s: float = 20.0
    failure: str = ""
    """A FailureReason: the job fails with it instead of uploading ..."""
    fails_while: str = "Training"
    """... or at the end of `Starting` or `Downloading`."""
    interruptions: int = 0
    """Of managed spot, evenly over the training; each is followed by another start, and goes on where it was."""
    sigterm_s: float = 5.0
    """What the container takes to end after SIGTERM; SIGKILL ends it after 120 s."""
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One state of the timeline, from `at` on."""

    at: float
    status: str
    secondary: str
    message: str


@dataclass
class Training:
    """A job from its creation on. `timeline` is its whole future, until somebody stops it."""

    name: str
    arn: str
    request: dict[str, Any]
    life: Life
    created_at: float
    tags: dict[str, str]
    timeline: list[Step]
    failure: str = ""
    """FailureReason, once it has failed."""
    stopped_at: float | None = None

    @property
    def instances(self) -> int:
        config = self.request["ResourceConfig"]
        groups = config.get("InstanceGroups", [])
        return int(sum(one["InstanceCount"] for one in groups) if groups else config["InstanceCount"])

    @property
    def instance_type(self) -> str:
        config = self.request["ResourceConfig"]
        kind: str = config["InstanceType"] if "InstanceType" in config else config["InstanceGroups"][0]["InstanceType"]
        return kind

    @property
    def spot(self) -> bool:
        return bool(self.request.get("EnableManagedSpotTraining"))

    @property
    def ends_at(self) -> float:
        return self.timeline[-1].at

    def step(self, now: float) -> Step:
        return [one for one in self.timeline if one.at <= now][-1]

    def lives(self, now: float) -> bool:
        """Whether it still works, and costs, or is about to."""
        return now < self.ends_at

    def stop(self, now: float) -> None:
        """As StopTrainingJob: SIGTERM to a container that runs, what it wrote is uploaded; what is still starting ends soon."""
        if self.stopped_at is not None:
            return
        secondary, self.stopped_at = self.step(now).secondary, now
        past = [one for one in self.timeline if one.at <= now]
        left = {
            "Training": min(self.life.sigterm_s, SIGKILL_S) + self.life.uploading_s,
            "Uploading": self.ends_at - now,
        }
        ends = now + left.get(secondary, 5.0)
        self.timeline = [
            *past,
            Step(now, "Stopping", "Stopping", "Stopping the training job"),
            Step(ends, "Stopped", "Stopped", "Training job stopped"),
        ]

    def described(self, now: float) -> dict[str, Any]:
        """The answer of DescribeTrainingJob. Members that SageMaker has nothing to say about are left out."""
        past = [one for one in self.timeline if one.at <= now]
        last, over = past[-1], past[-1].status in ENDED
        answer: dict[str, Any] = {
            "TrainingJobName": self.name,
            "TrainingJobArn": self.arn,
            "TrainingJobStatus": last.status,
            "SecondaryStatus": last.secondary,
            "SecondaryStatusTransitions": [
                {"Status": one.secondary, "StartTime": _time(one.at), "StatusMessage": one.message}
                | ({} if following is None else {"EndTime": _time(following.at)})
                for one, following in zip(past, [*past[1:], None], strict=True)
            ],
            "CreationTime": _time(self.created_at),
            "LastModifiedTime": _time(last.at),
            "ModelArtifacts": {"S3ModelArtifacts": self._artifact()} if self._uploaded(now) else None,
            **{name: self.request[name] for name in ECHOED if name in self.request},
        }
        began = next((one.at for one in past if one.secondary in {"Downloading", "Training"}), None)
        if began is not None:
            answer["TrainingStartTime"] = _time(began)
        if over:
            answer["TrainingEndTime"] = _time(last.at)
        if over and began is not None:
            answer["TrainingTimeInSeconds"] = int(last.at - began)
            answer["BillableTimeInSeconds"] = self._billable(began, past)
        if last.status == "Failed":
            answer["FailureReason"] = self.failure
        if over and self._trained(past) and self.life.metrics:
            answer["FinalMetricDataList"] = [
                {"MetricName": name, "Value": value, "Timestamp": _time(last.at)}
                for name, value in self.life.metrics.items()
            ]
        return answer

    def summary(self, now: float) -> dict[str, Any]:
        """One entry of ListTrainingJobs."""
        whole = self.described(now)
        names = ("TrainingJobName", "TrainingJobArn", "CreationTime", "TrainingEndTime", "LastModifiedTime")
        return {name: whole[name] for name in (*names, "TrainingJobStatus", "SecondaryStatus") if name in whole}

    def _billable(self, began: float, past: list[Step]) -> int:
        """Wall-clock seconds, whatever the number of instances; of managed spot about a third, and no pause between two
        interruptions."""
        paused = 0.0
        for one, following in pairwise(past):
            if one.at >= began and one.secondary in {"Interrupted", "Starting"}:
                paused += following.at - one.at
        seconds = past[-1].at - began - paused
        return int(seconds * (0.3 if self.spot else 1.0))

    def _uploaded(self, now: float) -> bool:
        last = self.step(now)
        trained = self._trained([one for one in self.timeline if one.at <= now])
        return last.status == "Completed" or (last.status == "Stopped" and trained)

    @staticmethod
    def _trained(past: list[Step]) -> bool:
        return any(one.secondary == "Training" for one in past)

    def _artifact(self) -> str:
        return f"{self.request['OutputDataConfig']['S3OutputPath'].rstrip('/')}/{self.name}/output/model.tar.gz"


def planned(request: dict[str, Any], life: Life, now: float) -> tuple[list[Step], str]:
    """The timeline of a job that nobody stops, and its FailureReason. MaxRuntime and MaxWaitTime end it as Stopped."""
    steps = [Step(now, "InProgress", "Starting", "Starting the training job")]
    at = now + life.starting_s
    if life.failure and life.fails_while == "Starting":
        return [*steps, _failed(at, life)], life.failure
    steps.append(Step(at, "InProgress", "Downloading", "Downloading input data"))
    at += life.downloading_s
    if life.failure and life.fails_while == "Downloading":
        return [*steps, _failed(at, life)], life.failure
    pieces = life.interruptions + 1
    for piece in range(pieces):
        steps.append(Step(at, "InProgress", "Training", "Training image download completed. Training in progress."))
        at += life.training_s / pieces
        if piece < life.interruptions:
            steps.append(Step(at, "InProgress", "Interrupted", "Interrupted by the reclaim of spot capacity"))
            steps.append(Step(at + 10, "InProgress", "Starting", "Preparing the instances for training"))
            at += 10 + life.starting_s
    if life.failure:
        return _limited([*steps, _failed(at, life)], request, life), life.failure
    steps.append(Step(at, "InProgress", "Uploading", "Uploading generated training model"))
    steps.append(Step(at + life.uploading_s, "Completed", "Completed", "Training job completed"))
    return _limited(steps, request, life), ""


def _failed(at: float, life: Life) -> Step:
    return Step(at, "Failed", "Failed", life.failure)


def _limited(steps: list[Step], request: dict[str, Any], life: Life) -> list[Step]:
    """What is over its time is sent SIGTERM, uploads, and is Stopped."""
    condition = request.get("StoppingCondition", {})
    began = next((one.at for one in steps if one.secondary == "Downloading"), steps[0].at)
    limits = [(began + condition.get("MaxRuntimeInSeconds", 86_400), "MaxRuntimeExceeded")]
    if wait := condition.get("MaxWaitTimeInSeconds"):
        limits.append((steps[0].at + wait, "MaxWaitTimeExceeded"))
    at, why = min(limits)
    if at >= steps[-1].at:
        return steps
    ends = at + min(life.sigterm_s, SIGKILL_S) + life.uploading_s
    return [
        *(one for one in steps if one.at <= at),
        Step(at, "Stopping", "Stopping", f"Stopping the training job: {why}"),
        Step(ends, "Stopped", why, f"Training job stopped: {why}"),
    ]


def begun(name: str, arn: str, request: dict[str, Any], life: Life, now: float) -> Training:
    """A job that was accepted now."""
    timeline, failure = planned(request, life, now)
    tags = {one["Key"]: one["Value"] for one in request.get("Tags", [])}
    return Training(name, arn, request, replace(life), now, tags, timeline, failure)


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)
