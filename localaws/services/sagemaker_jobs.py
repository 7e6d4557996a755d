"""One training job as SageMaker describes it: its states over time, and the results once it has ended."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from localaws.model import moment

ENDED = frozenset({"Completed", "Failed", "Stopped"})
STATUS = {"MaxRuntimeExceeded": "Stopped", "MaxWaitTimeExceeded": "Stopped"} | {
    one: one for one in ("Stopping", "Completed", "Failed", "Stopped")
}
"""Status by secondary status; every other secondary status belongs to InProgress."""
SAYS = {
    "Starting": "Preparing the instances for training",
    "Downloading": "Downloading input data",
    "Training": "Training image download completed. Training in progress.",
    "Interrupted": "Training job interrupted by a loss of spot capacity",
    "Uploading": "Uploading generated training model",
    "Stopping": "Stopping the training job",
    "Completed": "Training job completed",
    "Stopped": "Training job stopped",
    "Failed": "Training job failed",
    "MaxRuntimeExceeded": "Training job runtime exceeded MaxRuntimeInSeconds provided",
    "MaxWaitTimeExceeded": "Training job wait time exceeded MaxWaitTimeInSeconds provided",
}
SPOT_SHARE = 0.3
"""Share of the on-demand price for managed spot; real spot prices vary by the hour."""
UNTOLD = frozenset({"Tags", "SessionChainingConfig"})
"""Members of the request that DescribeTrainingJob does not return."""


@dataclass(frozen=True, slots=True)
class Step:
    """One state of the timeline, from `at` on."""

    at: float
    secondary: str
    message: str

    @property
    def status(self) -> str:
        return STATUS.get(self.secondary, "InProgress")


@dataclass(eq=False)
class Training:
    """A job from its creation on. Its timeline may reach into the future, as far as that is planned."""

    name: str
    arn: str
    request: dict[str, Any]
    created_at: float
    tags: dict[str, str]
    timeline: list[Step] = field(default_factory=list)
    failure: str = ""
    """FailureReason, if it has failed."""
    artifact: str = ""
    """Address of the model, once the job has ended."""
    metrics: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Last value and time of each metric, once the job has ended."""
    stopped_at: float | None = None
    turn: Any = field(default_factory=threading.RLock, repr=False)

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
    def output(self) -> str:
        """Where its archives are written."""
        return f"{self.request['OutputDataConfig']['S3OutputPath'].rstrip('/')}/{self.name}/output"

    @property
    def ends_at(self) -> float:
        return self.timeline[-1].at

    def limit(self, name: str) -> float:
        """Seconds of the stopping condition; a day if none is set."""
        return float(self.request.get("StoppingCondition", {}).get(name, 86_400))

    def step(self, now: float) -> Step:
        return self.past(now)[-1]

    def past(self, now: float) -> list[Step]:
        return [one for one in self.timeline if one.at <= now]

    def lives(self, now: float) -> bool:
        """Whether it runs, and costs, or is about to."""
        return self.step(now).status not in ENDED

    def enter(self, secondary: str, at: float, message: str = "") -> None:
        """Enters a new last state. A stopping job can only enter its end."""
        with self.turn:
            step = Step(at, secondary, message or SAYS[secondary])
            if not self.timeline or self.timeline[-1].status != "Stopping" or step.status in ENDED:
                self.timeline = [*self.timeline, step]

    def described(self, now: float) -> dict[str, Any]:
        """Returns the answer of DescribeTrainingJob, without the members that SageMaker leaves out."""
        past = self.past(now)
        last, over = past[-1], past[-1].status in ENDED
        ends = [*(one.at for one in past[1:]), last.at if over else None]
        answer: dict[str, Any] = {name: value for name, value in self.request.items() if name not in UNTOLD} | {
            "TrainingJobArn": self.arn,
            "TrainingJobStatus": last.status,
            "SecondaryStatus": last.secondary,
            "SecondaryStatusTransitions": [
                {"Status": one.secondary, "StartTime": moment(one.at), "StatusMessage": one.message}
                | ({} if end is None else {"EndTime": moment(end)})
                for one, end in zip(past, ends, strict=True)
            ],
            "CreationTime": moment(self.created_at),
            "LastModifiedTime": moment(last.at),
        }
        began = next((one.at for one in past if one.secondary in {"Downloading", "Training"}), None)
        if began is not None:
            answer["TrainingStartTime"] = moment(began)
        return answer | self._ended(past, began) if over else answer

    def summary(self, now: float) -> dict[str, Any]:
        """Returns one entry of ListTrainingJobs."""
        whole = self.described(now)
        names = ("TrainingJobName", "TrainingJobArn", "CreationTime", "TrainingEndTime", "LastModifiedTime")
        return {name: whole[name] for name in (*names, "TrainingJobStatus", "SecondaryStatus") if name in whole}

    def _ended(self, past: list[Step], began: float | None) -> dict[str, Any]:
        last = past[-1]
        found: dict[str, Any] = {"TrainingEndTime": moment(last.at)}
        if began is not None:
            found["TrainingTimeInSeconds"] = _whole(last.at - began)
            found["BillableTimeInSeconds"] = self._billable(began, past)
        if last.status == "Failed":
            found["FailureReason"] = self.failure
        if self.artifact:
            found["ModelArtifacts"] = {"S3ModelArtifacts": self.artifact}
        if self.metrics:
            found["FinalMetricDataList"] = [
                {"MetricName": name, "Value": value, "Timestamp": moment(at)}
                for name, (value, at) in self.metrics.items()
            ]
        return found

    def _billable(self, began: float, past: list[Step]) -> int:
        """Returns wall-clock seconds, whatever the number of instances; for managed spot about a third, without the pauses between
        interruptions."""
        pauses = (
            following.at - one.at
            for one, following in pairwise(past)
            if one.at >= began and one.secondary in {"Interrupted", "Starting"}
        )
        return _whole((past[-1].at - began - sum(pauses)) * (SPOT_SHARE if self.spot else 1.0))


def _whole(seconds: float) -> int:
    """Rounds up to whole seconds; today's clocks are exact to a microsecond at best."""
    return math.ceil(round(seconds, 3))
