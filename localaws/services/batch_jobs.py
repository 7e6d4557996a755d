"""Jobs of Batch: plain ones, arrays and their children; their attempts, and what the retry strategy does after each attempt."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from localaws.model import Clock

if TYPE_CHECKING:
    from localaws.containers.container import Container

Request = dict[str, Any]
GRACE_S = 30.0
"""Fargate's time from SIGTERM to SIGKILL."""

ENDED = ("SUCCEEDED", "FAILED")
STATUSES = ("SUBMITTED", "PENDING", "RUNNABLE", "STARTING", "RUNNING", *ENDED)
WAITING = ("SUBMITTED", "PENDING", "RUNNABLE")


@dataclass(slots=True, kw_only=True)
class Attempt:
    """What DescribeJobs says about an attempt."""

    task: str
    log_stream: str = ""
    started_at: float = 0.0
    stopped_at: float = 0.0
    code: int | None = None
    status_reason: str = "Essential container in task exited"
    reason: str = ""
    """Reason of the container, if something other than the command ended it."""
    container: Container | None = field(default=None, repr=False)
    ending: threading.Event = field(default_factory=threading.Event, repr=False)
    """Set once somebody wants the attempt to end, whether or not its container has started."""

    def described(self) -> dict[str, Any]:
        told = {"taskArn": self.task, "logStreamName": self.log_stream, "exitCode": self.code, "reason": self.reason}
        whole = {
            "container": {name: value for name, value in told.items() if value not in (None, "")},
            "startedAt": int(self.started_at * 1000),
            "stoppedAt": int(self.stopped_at * 1000),
            "statusReason": self.status_reason,
        }
        return {name: value for name, value in whole.items() if value}


class Job:
    """A plain job or a child of an array: the things that run."""

    def __init__(self, submitted: Submitted, index: int | None) -> None:
        self.submitted, self.index = submitted, index
        self.id = submitted.id if index is None else f"{submitted.id}:{index}"
        self.reason = ""
        self.terminated = self.cancelled = False
        self.attempts: list[Attempt] = []
        self.stopping = threading.Event()
        self._clock = submitted.clock
        self._steps = [(submitted.created, "RUNNABLE")]

    def enter(self, status: str, after_s: float = 0.0) -> None:
        self._steps = [*self._steps, (self._clock.time() + after_s, status)]

    @property
    def status(self) -> str:
        return self._past()[-1][1]

    @property
    def started(self) -> float:
        """When it first ran, 0 if it has not run."""
        return next((at for at, status in self._past() if status == "RUNNING"), 0.0)

    @property
    def stopped(self) -> float:
        at, status = self._past()[-1]
        return at if status in ENDED else 0.0

    def _past(self) -> list[tuple[float, str]]:
        now = self._clock.time()
        return [one for one in self._steps if one[0] <= now]

    @property
    def arn(self) -> str:
        return f"{self.submitted.arn}:{self.index}" if self.index is not None else self.submitted.arn

    def variables(self) -> dict[str, str]:
        """Returns the variables that Batch itself sets; a plain job has no index."""
        index = {} if self.index is None else {"AWS_BATCH_JOB_ARRAY_INDEX": str(self.index)}
        return {
            "AWS_BATCH_JOB_ID": self.id,
            "AWS_BATCH_JOB_ATTEMPT": str(len(self.attempts)),
            "AWS_BATCH_JQ_NAME": self.submitted.queue.rpartition("/")[2],
            "AWS_BATCH_CE_NAME": self.submitted.environment.rpartition("/")[2],
            **index,
        }

    def tried_again(self) -> bool:
        """Whether the retry strategy allows another attempt after the last one."""
        strategy, last = self.submitted.retry, self.attempts[-1]
        if self.stopping.is_set() or len(self.attempts) >= strategy.get("attempts", 1):
            return False
        rules = strategy.get("evaluateOnExit", [])
        verdict = next((rule["action"] for rule in rules if _matches(rule, last)), "RETRY")
        return str(verdict).upper() == "RETRY"

    def described(self) -> Request:
        attempts = [one.described() for one in self.attempts if one.stopped_at]
        index = {} if self.index is None else {"arrayProperties": {"index": self.index}}
        return {**self.submitted.detail(self), "attempts": attempts, "container": self._container(), **index}

    def _container(self) -> Request:
        found = dict(self.submitted.properties)
        if self.attempts:
            last = self.attempts[-1].described()["container"]
            found |= last
        return found


class Submitted:
    """The result of SubmitJob: a plain job, or an array with its children."""

    def __init__(
        self,
        request: Request,
        queue: Request,
        definition: Request,
        *,
        account: str,
        region: str,
        clock: Clock,
        identity: str = "",
    ) -> None:
        self.id = identity or str(uuid.uuid4())
        self.clock, self.created = clock, clock.time()
        self.region, self.name = region, str(request["jobName"])
        self.arn = f"arn:aws:batch:{region}:{account}:job/{self.id}"
        self.queue = str(queue["jobQueueArn"])
        self.environment = str(queue["computeEnvironmentOrder"][0]["computeEnvironment"])
        self.definition = str(definition["jobDefinitionArn"])
        self.retry = request.get("retryStrategy") or definition.get("retryStrategy", {})
        self.timeout_s = (request.get("timeout") or definition.get("timeout", {})).get("attemptDurationSeconds")
        self.tags = {**definition.get("tags", {}), **request.get("tags", {})}
        self.properties = _overridden(definition["containerProperties"], request.get("containerOverrides", {}))
        self.parameters = {**definition.get("parameters", {}), **request.get("parameters", {})}
        size = request.get("arrayProperties", {}).get("size")
        self.jobs = [Job(self, None)] if size is None else [Job(self, index) for index in range(size)]
        self.is_array = size is not None
        self.terminated = self.cancelled = False
        self.reason = self.told = ""

    @property
    def status(self) -> str:
        """Status; an array is PENDING until every child has ended, and FAILED if one failed."""
        if not self.is_array:
            return self.jobs[0].status
        found = {one.status for one in self.jobs}
        if found <= set(ENDED):
            return "FAILED" if "FAILED" in found else "SUCCEEDED"
        return "PENDING"

    @property
    def started(self) -> float:
        return min((one.started for one in self.jobs if one.started), default=0.0)

    @property
    def stopped(self) -> float:
        return max(one.stopped for one in self.jobs) if self.status in ENDED else 0.0

    def detail(self, one: Submitted | Job) -> Request:
        """What DescribeJobs says about an array or a job."""
        reason = one.reason or ("Array Child Job failed" if one is self and one.status == "FAILED" else "")
        stopped = int(one.stopped * 1000)
        return {
            "jobArn": one.arn,
            "jobId": one.id,
            "jobName": self.name,
            "jobQueue": self.queue,
            "jobDefinition": self.definition,
            "parameters": self.parameters,
            "retryStrategy": self.retry,
            "tags": self.tags,
            "platformCapabilities": ["FARGATE"],
            "dependsOn": [],
            "status": one.status,
            "createdAt": int(self.created * 1000),
            "startedAt": int(one.started * 1000),
            "isTerminated": one.terminated,
            "isCancelled": one.cancelled,
            **({"stoppedAt": stopped} if stopped else {}),
            **({"statusReason": reason} if reason else {}),
        }

    def described(self) -> Request:
        """Returns DescribeJobs' entry for what was submitted; children have their own entries."""
        if not self.is_array:
            return self.jobs[0].described()
        counts = Counter(one.status for one in self.jobs)
        summary = {status: counts.get(status, 0) for status in STATUSES}
        array = {"size": len(self.jobs), "statusSummary": summary}
        return {**self.detail(self), "attempts": [], "container": self.properties, "arrayProperties": array}


def summary(described: Mapping[str, Any]) -> Request:
    """Returns ListJobs' entry."""
    names = (
        "jobArn",
        "jobId",
        "jobName",
        "createdAt",
        "status",
        "statusReason",
        "startedAt",
        "stoppedAt",
        "jobDefinition",
    )
    found = {name: described[name] for name in (*names, "isCancelled", "isTerminated") if name in described}
    if code := described.get("container", {}).get("exitCode"):
        found["container"] = {"exitCode": code}
    if array := described.get("arrayProperties"):
        found["arrayProperties"] = array
    return found


def fits(described: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Whether ListJobs shows a job: by the filters, which ignore the status, or by the status (RUNNING by default)."""
    filters = request.get("filters")
    if not filters:
        return bool(described["status"] == request.get("jobStatus", "RUNNING"))
    return all(_passes(described, one["name"], one["values"]) for one in filters)


def _passes(described: Mapping[str, Any], name: str, values: list[str]) -> bool:
    if name in ("AFTER_CREATED_AT", "BEFORE_CREATED_AT"):
        after = described["createdAt"] >= int(values[0])
        return after if name == "AFTER_CREATED_AT" else not after
    shown = {"JOB_NAME": described["jobName"], "JOB_DEFINITION": described["jobDefinition"].rpartition("/")[2]}
    return any(_like(value.lower(), shown[name].lower()) for value in values)


def _matches(rule: Mapping[str, str], attempt: Attempt) -> bool:
    """Whether everything that a rule names fits; `*` is only allowed at an end."""
    code = "" if attempt.code is None else str(attempt.code)
    told = {"onExitCode": code, "onReason": attempt.reason, "onStatusReason": attempt.status_reason}
    named = [(rule[name], value) for name, value in told.items() if name in rule]
    return all(_like(pattern.lower(), value.lower()) for pattern, value in named)


def _like(pattern: str, text: str) -> bool:
    return fnmatchcase(text, pattern.replace("[", "[[]").replace("?", "[?]"))


def _overridden(properties: Mapping[str, Any], overrides: Mapping[str, Any]) -> Request:
    """Returns the container's properties with SubmitJob's overrides; variables are replaced one by one."""
    variables = {one["name"]: one for one in properties.get("environment", [])}
    variables |= {one["name"]: one for one in overrides.get("environment", [])}
    resources = {one["type"]: one for one in properties.get("resourceRequirements", [])}
    resources |= {one["type"]: one for one in overrides.get("resourceRequirements", [])}
    found = {**properties, "environment": list(variables.values()), "resourceRequirements": list(resources.values())}
    return {**found, **({"command": overrides["command"]} if overrides.get("command") else {})}
