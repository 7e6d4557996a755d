"""SageMaker's training jobs in one region: unique names, quotas of instances, throttles, and jobs that live.

Whoever creates one supplies a clock and, by a subclass, a way to run created jobs: `sagemaker_planned` needs only the clock,
`sagemaker` runs the images' commands as processes.
"""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from localaws.model import ACCOUNT, Clock, Pages, Refused, Tokens
from localaws.services.sagemaker_jobs import ENDED, Training

CREATE, DESCRIBE = "CreateTrainingJob", "DescribeTrainingJob"
PAGE = 100
LISTED = 10
"""Entries of a page of ListTrainingJobs by default."""
MOST_TAGS = 50
NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
LONGEST_RUN_S = 28 * 86_400
NOT_FOUND = "Requested resource not found."
"""Message of the ValidationException with which SageMaker says that no job has the name."""
Begin = Callable[[Training], None]


class SageMaker(ABC):
    """Training jobs of one region. Nothing limits it until somebody sets a limit."""

    def __init__(self, region: str, clock: Clock, account: str = ACCOUNT) -> None:
        self.region, self.clock, self.account = region, clock, account
        self.trainings: dict[str, Training] = {}
        """Trainings by name, in the order of creation; nothing of ours may delete a training, so a name stays taken."""
        self.quotas: dict[tuple[str, bool], int] = {}
        """Instances at once, by type and whether spot; a missing entry means no limit."""
        self.limits: dict[str, Tokens] = {}
        """Token bucket by operation; a missing entry means no limit."""
        self.pages = Pages(size=PAGE, error="ValidationException")
        self._alive: list[Training] = []
        self._by_arn: dict[str, Training] = {}
        self._turn = threading.RLock()
        self._operations: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            CREATE: self._create,
            DESCRIBE: lambda params: self._known(params["TrainingJobName"]).described(self.clock.time()),
            "StopTrainingJob": self._stop,
            "ListTrainingJobs": self._list,
            "ListTags": lambda params: _list_tags(self._named(params["ResourceArn"])),
            "AddTags": self._tag,
        }

    # for whoever gives it a way to run work

    @abstractmethod
    def prepared(self, request: dict[str, Any]) -> Begin:
        """Checks what only the surroundings know; its result begins the work. Raises Refused."""

    @abstractmethod
    def end(self, training: Training, left: str) -> None:
        """Ends the work of a training that was in the secondary status `left` and is `Stopping` from now on."""

    def quota(self, training: Training) -> int | None:
        """Returns how many of its instances may run at once; None for no limit."""
        return self.quotas.get((training.instance_type, training.spot))

    # what AWS's API does

    def answer(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answers a call. Raises Refused."""
        with self._turn:
            tokens = self.limits.get(operation)
            if tokens is not None and not tokens.take(self.clock.time()):
                raise throttled()
        if operation not in self._operations:
            raise Refused("UnknownOperationException", f"The local SageMaker has no {operation}")
        return self._operations[operation](params)

    def alive(self) -> list[Training]:
        """Lists trainings that run, are about to, or are still stopping."""
        self._alive = [one for one in self._alive if one.lives(self.clock.time())]
        return self._alive

    def add(self, request: dict[str, Any]) -> Training:
        """Adds a training from now on, without checking its name and the quotas."""
        return self._begun(self._build_training(request), self.prepared(request))

    def _begun(self, training: Training, begin: Begin) -> Training:
        begin(training)  # before anybody can stop it
        self.trainings[training.name] = self._by_arn[training.arn] = training
        self._alive.append(training)
        return training

    def _build_training(self, request: dict[str, Any]) -> Training:
        name, now = request["TrainingJobName"], self.clock.time()
        arn = f"arn:aws:sagemaker:{self.region}:{self.account}:training-job/{name.lower()}"
        made = Training(name, arn, request, now, {one["Key"]: one["Value"] for one in request.get("Tags", [])})
        made.enter("Starting", now)
        return made

    def _create(self, params: dict[str, Any]) -> dict[str, Any]:
        if message := _invalid(params):
            raise invalid(message)
        begin = self.prepared(params)
        with self._turn:
            if known := self.trainings.get(params["TrainingJobName"]):
                message = (
                    "Training job names must be unique within an AWS account and region, and a training job with this"
                )
                raise Refused("ResourceInUse", f"{message} name already exists ({known.arn})")
            training = self._build_training(params)
            self._within_quota(training)
            return {"TrainingJobArn": self._begun(training, begin).arn}

    def _within_quota(self, wanted: Training) -> None:
        most, kind = self.quota(wanted), (wanted.instance_type, wanted.spot)
        if most is None:
            return
        used = sum(one.instances for one in self.alive() if (one.instance_type, one.spot) == kind)
        if used + wanted.instances > most:
            raise Refused(
                "ResourceLimitExceeded",
                f"The account-level service limit '{kind[0]} for {'spot ' if kind[1] else ''}training job usage' is {most} "
                f"Instances, with current utilization of {used} Instances and a request delta of {wanted.instances} "
                "Instances. Please use AWS Service Quotas to request an increase for this quota.",
            )

    def _stop(self, params: dict[str, Any]) -> dict[str, Any]:
        """Sends SIGTERM, waits 120 s, uploads the results. A second call has no effect."""
        training = self._known(params["TrainingJobName"])
        with training.turn:
            now = self.clock.time()
            left = training.step(now)
            if left.status in ENDED:
                raise invalid(f"The request was rejected because the training job is in status {left.status}.")
            if training.stopped_at is None:
                training.stopped_at, training.timeline = now, training.past(now)
                training.enter("Stopping", now)
                self.end(training, left.secondary)
        return {}

    def _list(self, params: dict[str, Any]) -> dict[str, Any]:
        """Lists the newest first, unless asked otherwise; at most 100 per page, 10 by default."""
        now, part = self.clock.time(), params.get("NameContains", "")
        found = [one for one in list(self.trainings.values()) if part in one.name]
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
        with self._turn:
            shown, following = self.pages.cut(found, params.get("NextToken"), params.get("MaxResults", LISTED), now)
        more = {"NextToken": following} if following else {}
        return {"TrainingJobSummaries": [one.summary(now) for one in shown], **more}

    def _tag(self, params: dict[str, Any]) -> dict[str, Any]:
        training = self._named(params["ResourceArn"])
        merged = training.tags | {one["Key"]: one["Value"] for one in params["Tags"]}
        if len(merged) > MOST_TAGS:
            raise invalid(f"A resource has at most {MOST_TAGS} tags")
        training.tags = merged
        return _list_tags(training)

    def _known(self, name: str) -> Training:
        if name not in self.trainings:
            raise invalid(NOT_FOUND)
        return self.trainings[name]

    def _named(self, arn: str) -> Training:
        """An ARN contains the name in lower case, so the name alone cannot be derived from it."""
        if arn not in self._by_arn:
            raise invalid(NOT_FOUND)
        return self._by_arn[arn]


def invalid(message: str) -> Refused:
    return Refused("ValidationException", message)


def throttled() -> Refused:
    return Refused("ThrottlingException", "Rate exceeded")


def _invalid(params: dict[str, Any]) -> str:
    """Returns SageMaker's message for requests that botocore's model allows and the service does not."""
    name = params["TrainingJobName"]
    if not NAME.fullmatch(name):  # the model's pattern has no anchors
        return (
            f"1 validation error detected: Value '{name}' at 'trainingJobName' failed to satisfy constraint: "
            f"Member must satisfy regular expression pattern: {NAME.pattern}"
        )
    keys = [one["Key"] for one in params.get("Tags", [])]
    if len(set(keys)) < len(keys):
        return "Tag keys must be unique."
    if any(key.lower().startswith("aws:") for key in keys):
        return "Tag keys must not begin with aws:."
    for definition in params["AlgorithmSpecification"].get("MetricDefinitions", []):
        try:
            re.compile(definition["Regex"])
        except re.error as problem:
            return f"Metric definition {definition['Name']}: invalid regular expression: {problem}"
    return _stopping(params)


def _stopping(params: dict[str, Any]) -> str:
    condition, spot = params.get("StoppingCondition", {}), params.get("EnableManagedSpotTraining")
    runtime, wait = condition.get("MaxRuntimeInSeconds", 86_400), condition.get("MaxWaitTimeInSeconds")
    if runtime > LONGEST_RUN_S:
        return f"MaxRuntimeInSeconds {runtime}: at most {LONGEST_RUN_S}"
    if wait is not None and not spot:
        return "Invalid MaxWaitTimeInSeconds. It is only supported when EnableManagedSpotTraining is set to true"
    if spot and (wait is None or wait < runtime):
        return "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to MaxRuntimeInSeconds"
    return ""


def _list_tags(training: Training) -> dict[str, Any]:
    return {"Tags": [{"Key": key, "Value": value} for key, value in training.tags.items()]}


def _seconds(value: Any) -> float:
    return float(value.timestamp() if hasattr(value, "timestamp") else value)
