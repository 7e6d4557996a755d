"""SageMaker of one region, as far as training jobs go: names once, quotas of instances, throttles, and jobs that live."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.clock import Clock
from tests.fakes.pages import Pages
from tests.fakes.sagemaker_training import Life, Training, begun
from tests.fakes.wire import Call, Refused

ACCOUNT = "123456789012"
PAGE = 100
LISTED = 10
"""What a page of ListTrainingJobs holds when nobody asks for more."""
MOST_TAGS = 50
NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
NOT_FOUND = "Requested resource not found."
"""With this message, and as a ValidationException, SageMaker says that it knows no job of a name."""


@dataclass
class Tokens:
    """A token bucket: so many calls at once, so many a second."""

    rate: float
    burst: float
    throttled: int = 0
    """Calls that found it empty."""
    _left: float = field(default=-1.0)
    _at: float = 0.0

    def take(self, now: float) -> bool:
        if self._left < 0:
            self._left, self._at = self.burst, now
        self._left = min(self.burst, self._left + (now - self._at) * self.rate)
        self._at = now
        if self._left < 1:
            self.throttled += 1
            return False
        self._left -= 1
        return True


@dataclass
class SageMaker:
    """Training jobs of one region. `aws.sagemaker(region)` has it; nothing limits it until a test says so."""

    region: str
    clock: Clock
    trainings: dict[str, Training] = field(default_factory=dict)
    """By name, in the order of creation; nobody of ours may delete a training, so a name stays taken."""
    life: Callable[[str], Life] = lambda _: Life()
    """What the training of a name is going to do."""
    quotas: dict[tuple[str, bool], int] = field(default_factory=dict)
    """Instances at once by type and whether spot; no entry is no limit."""
    limits: dict[str, Tokens] = field(default_factory=dict)
    """Token bucket of an operation; no entry is no limit."""
    refusals: dict[str, str] = field(default_factory=dict)
    """ValidationException by training's name: what a plan could not foresee."""
    pages: Pages = field(default_factory=lambda: Pages(size=PAGE, error="ValidationException"))
    _alive: list[Training] = field(default_factory=list)
    _by_arn: dict[str, Training] = field(default_factory=dict)

    def answer(self, call: Call) -> dict[str, Any]:
        tokens = self.limits.get(call.operation)
        if tokens is not None and not tokens.take(self.clock.now):
            raise Refused("ThrottlingException", "Rate exceeded")
        params = call.params
        match call.operation:
            case "CreateTrainingJob":
                return self._create(params)
            case "DescribeTrainingJob":
                return self._known(params["TrainingJobName"]).described(self.clock.now)
            case "StopTrainingJob":
                return self._stop(params["TrainingJobName"])
            case "ListTrainingJobs":
                return self._list(params)
            case "ListTags":
                found = self._named(params["ResourceArn"])
                return {"Tags": [{"Key": key, "Value": value} for key, value in found.tags.items()]}
            case "AddTags":
                return self._tag(params)
        raise Refused("UnknownOperationException", f"The fake has no {call.name}")

    def alive(self) -> list[Training]:
        """Trainings that run, are about to, or are still stopping."""
        self._alive = [one for one in self._alive if one.lives(self.clock.now)]
        return self._alive

    def add(self, request: dict[str, Any]) -> Training:
        """For tests: a training that is there, however it came to be."""
        name = request["TrainingJobName"]
        arn = f"arn:aws:sagemaker:{self.region}:{ACCOUNT}:training-job/{name.lower()}"
        training = begun(name, arn, request, self.life(name), self.clock.now)
        self.trainings[name] = self._by_arn[arn] = training
        self._alive.append(training)
        return training

    def _create(self, params: dict[str, Any]) -> dict[str, Any]:
        name = params["TrainingJobName"]
        if message := self.refusals.get(name) or _invalid(params):
            raise Refused("ValidationException", message)
        if known := self.trainings.get(name):
            message = "Training job names must be unique within an AWS account and region, and a training job with this"
            raise Refused("ResourceInUse", f"{message} name already exists ({known.arn})")
        self._within_quota(params)
        return {"TrainingJobArn": self.add(params).arn}

    def _within_quota(self, params: dict[str, Any]) -> None:
        wanted = begun("", "", params, Life(), self.clock.now)
        kind, spot = wanted.instance_type, wanted.spot
        most = self.quotas.get((kind, spot))
        if most is None:
            return
        used = sum(one.instances for one in self.alive() if (one.instance_type, one.spot) == (kind, spot))
        if used + wanted.instances > most:
            raise Refused(
                "ResourceLimitExceeded",
                f"The account-level service limit '{kind} for {'spot ' if spot else ''}training job usage' is {most} "
                f"Instances, with current utilization of {used} Instances and a request delta of {wanted.instances} "
                "Instances. Please use AWS Service Quotas to request an increase for this quota.",
            )

    def _stop(self, name: str) -> dict[str, Any]:
        training = self._known(name)
        if not training.lives(self.clock.now):
            status = training.step(self.clock.now).status
            message = f"The request was rejected because the training job is in status {status}."
            raise Refused("ValidationException", message)
        training.stop(self.clock.now)
        return {}

    def _list(self, params: dict[str, Any]) -> dict[str, Any]:
        """Newest first, unless asked otherwise; at most 100 a page, 10 where nobody says."""
        now, part = self.clock.now, params.get("NameContains", "")
        found = [one for one in self.trainings.values() if part in one.name]
        if wanted := params.get("StatusEquals"):
            found = [one for one in found if one.step(now).status == wanted]
        if after := params.get("CreationTimeAfter"):
            found = [one for one in found if one.created_at >= _seconds(after)]
        if before := params.get("CreationTimeBefore"):
            found = [one for one in found if one.created_at <= _seconds(before)]
        if params.get("SortBy") == "Name":
            found.sort(key=lambda one: one.name)
        if params.get("SortOrder", "Descending") == "Descending":
            found.reverse()
        start = self.pages.resume(params.get("NextToken"), now)
        size = min(int(params.get("MaxResults", LISTED)), self.pages.size)
        shown = found[start : start + size]
        following = self.pages.issue(start + size, now) if start + size < len(found) else None
        return {"TrainingJobSummaries": [one.summary(now) for one in shown], "NextToken": following}

    def _tag(self, params: dict[str, Any]) -> dict[str, Any]:
        training = self._named(params["ResourceArn"])
        merged = training.tags | {one["Key"]: one["Value"] for one in params["Tags"]}
        if len(merged) > MOST_TAGS:
            raise Refused("ValidationException", f"A resource has at most {MOST_TAGS} tags")
        training.tags = merged
        return {"Tags": [{"Key": key, "Value": value} for key, value in merged.items()]}

    def _known(self, name: str) -> Training:
        if name not in self.trainings:
            raise Refused("ValidationException", NOT_FOUND)
        return self.trainings[name]

    def _named(self, arn: str) -> Training:
        """An ARN has the name in lower case: it cannot be told from the name alone."""
        if arn not in self._by_arn:
            raise Refused("ValidationException", NOT_FOUND)
        return self._by_arn[arn]


def _invalid(params: dict[str, Any]) -> str:
    """What SageMaker says of requests that its model allows and the service does not."""
    name = params["TrainingJobName"]
    if not NAME.fullmatch(name):  # the model's pattern has no anchors
        return f"Value '{name}' at 'trainingJobName' failed to satisfy constraint: {NAME.pattern}"
    condition, tags = params.get("StoppingCondition", {}), params.get("Tags", [])
    spot, wait = params.get("EnableManagedSpotTraining"), condition.get("MaxWaitTimeInSeconds")
    if wait is not None and not spot:
        return "MaxWaitTimeInSeconds above 0 is not supported in on-demand mode."
    if spot and wait is None:
        return "MaxWaitTimeInSeconds must be present when EnableManagedSpotTraining is set to true."
    if spot and wait < condition.get("MaxRuntimeInSeconds", 86_400):
        return "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to MaxRuntimeInSeconds."
    keys = [one["Key"] for one in tags]
    if len(set(keys)) < len(keys):
        return "Tag keys must be unique."
    if any(key.lower().startswith("aws:") for key in keys):
        return "Tag keys must not begin with aws:."
    return ""


def _seconds(value: Any) -> float:
    return float(value.timestamp() if hasattr(value, "timestamp") else value)
