"""Batch: queues, jobs and arrays by their ids; listed a status at a time, described, submitted, terminated."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from localaws.model import Pages
from tests.fakes.clock import Clock
from tests.fakes.wire import Call, Refused

MOST_DESCRIBED = 100
LISTED = 100
"""The most that a page of ListJobs holds."""
ARRAY = range(2, 10_001)
OVER = frozenset({"SUCCEEDED", "FAILED"})
GRACE_S = 30.0
"""From SIGTERM to SIGKILL, for a job that was terminated."""


@dataclass
class Batch:
    """One region's jobs. A child of an array is `<array's id>:<index>`; what runs inside of a job is the tests' own."""

    clock: Clock = field(default_factory=lambda: Clock(0.0))
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """JobDetail by id."""
    queues: set[str] = field(default_factory=lambda: {"queue"})
    pages: Pages = field(default_factory=lambda: Pages(size=LISTED, error="ClientException"))
    grace_s: float = GRACE_S
    _number: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def answer(self, call: Call) -> dict[str, Any]:
        params = call.params
        match call.operation:
            case "DescribeJobs":
                return self._describe(params["jobs"])
            case "ListJobs":
                return self._list(params)
            case "SubmitJob":
                return self._submit(params)
            case "TerminateJob":
                return self._terminate(params["jobId"], params["reason"])
        raise Refused("ClientException", f"The fake has no {call.name}")

    def add(self, job: str, **details: Any) -> None:
        """For tests: a job that is there, however it came to be."""
        required = {
            "jobId": job,
            "jobName": job.replace(":", "-"),
            "jobQueue": "queue",
            "jobDefinition": "definition",
            "startedAt": 0,
            "createdAt": int(self.clock.now * 1000),
        }
        self.jobs[job] = required | {"status": "RUNNING"} | details

    def end(self, job: str, status: str = "SUCCEEDED") -> None:
        """For tests: a job is over, and its children with it."""
        for one in self._family(job):
            self.jobs[one]["status"] = status

    def _family(self, job: str) -> list[str]:
        return [one for one in self.jobs if one == job or one.startswith(f"{job}:")]

    def _submit(self, params: dict[str, Any]) -> dict[str, Any]:
        """Accepted; it runs when a test says so. An array as a whole is PENDING until its last child is over."""
        queue = params["jobQueue"].rpartition("/")[2]
        if queue not in self.queues:
            raise Refused("ClientException", f"Job queue {queue} does not exist")
        size = params.get("arrayProperties", {}).get("size")
        if size is not None and size not in ARRAY:
            raise Refused("ClientException", f"Array job size must be between 2 and 10000, was {size}")
        job = f"job-{next(self._number)}"
        details: dict[str, Any] = {"jobName": params["jobName"], "jobQueue": queue, "tags": params.get("tags", {})}
        if size is not None:
            details |= {"status": "PENDING", "arrayProperties": {"size": size}}
            for index in range(size):
                self.add(f"{job}:{index}", **(details | {"status": "RUNNABLE", "arrayProperties": {"index": index}}))
        self.add(job, **({"status": "RUNNABLE"} | details))
        return {"jobId": job, "jobName": params["jobName"]}

    def _list(self, params: dict[str, Any]) -> dict[str, Any]:
        """Of a queue and in one status, RUNNING where none is named; children are listed by their array alone."""
        queue, status = params["jobQueue"].rpartition("/")[2], params.get("jobStatus", "RUNNING")
        if queue not in self.queues:
            raise Refused("ClientException", f"Job queue {queue} does not exist")
        found = [
            one
            for one in self.jobs.values()
            if one["jobQueue"] == queue and one["status"] == status and ":" not in one["jobId"]
        ]
        start = self.pages.resume(params.get("nextToken"), self.clock.now)
        size = min(params.get("maxResults", LISTED), self.pages.size)
        following = self.pages.issue(start + size, self.clock.now) if start + size < len(found) else None
        names = ("jobId", "jobName", "createdAt", "status")
        summaries = [{name: one[name] for name in names if name in one} for one in found[start : start + size]]
        return {"jobSummaryList": summaries, "nextToken": following}

    def _describe(self, asked: list[str]) -> dict[str, Any]:
        """What is not known is left out, and no error."""
        if len(asked) > MOST_DESCRIBED:
            raise Refused("ClientException", f"At most {MOST_DESCRIBED} jobs can be described")
        return {"jobs": [self.jobs[one] for one in asked if one in self.jobs]}

    def _terminate(self, job: str, reason: str) -> dict[str, Any]:
        """What runs has half a minute; what is over stays as it is. Of an array, every child; it is over with the last of them."""
        if job not in self.jobs:
            raise Refused("ClientException", f"Job {job} does not exist")
        for one in self._family(job):
            details = self.jobs[one]
            if details["status"] in OVER or details.get("isTerminated"):
                continue
            details |= {"isTerminated": True, "statusReason": reason}
            if details["status"] in {"STARTING", "RUNNING", "PENDING"}:
                self.clock.at(self.clock.now + self.grace_s, partial(self._over, one))
            else:
                details["status"] = "FAILED"
        return {}

    def _over(self, job: str) -> None:
        if self.jobs[job]["status"] not in OVER:
            self.jobs[job]["status"] = "FAILED"
