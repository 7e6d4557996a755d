"""Batch of one region: queues in which jobs wait, jobs and arrays by their ids, listed per status, and their ends.

Whoever creates one supplies a clock and, by a subclass, a way to run submitted jobs.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection

from localaws.model import ACCOUNT, Clock, Pages
from localaws.services.batch_jobs import ENDED, STATUSES, WAITING, Job, Request, Submitted, fits, summary
from localaws.services.batch_registry import NAME, Registry, client_problem

ARRAY = range(2, 10_001)
"""Numbers of children that an array may have."""
MOST = 100
"""The most jobs of a page of ListJobs, and of a call of DescribeJobs."""


class Batch(ABC):
    """One region. A child of an array has the id `<array's id>:<index>`."""

    def __init__(self, region: str, clock: Clock, account: str = ACCOUNT) -> None:
        self.region, self.clock, self.account = region, clock, account
        self.registry = Registry(region, account)
        self.queues = self.registry.queues
        self.submitted: dict[str, Submitted] = {}
        self.pages = Pages(size=MOST, error="ClientException")
        self._turn = threading.RLock()
        self._operations: dict[str, Callable[[Request], Request]] = {
            "SubmitJob": self._submit,
            "DescribeJobs": self._describe,
            "ListJobs": self._list,
            "TerminateJob": lambda params: self._end(params, "terminated", set(STATUSES) - set(ENDED)),
            "CancelJob": lambda params: self._end(params, "cancelled", WAITING),
            "TagResource": self._tag,
            "ListTagsForResource": lambda params: {"tags": self._tagged(params["resourceArn"])},
            **self.registry.operations,
        }

    # for whoever gives it a way to run work

    @abstractmethod
    def begin(self, made: Submitted) -> None:
        """Starts work: its jobs are RUNNABLE from now on."""

    @abstractmethod
    def end(self, job: Job) -> None:
        """Ends work: somebody terminated or cancelled a job that has not ended."""

    # what AWS's API does

    def answer(self, operation: str, params: Request) -> Request:
        """Answers a call. Raises Refused."""
        if operation not in self._operations:
            raise client_problem(f"The local Batch has no {operation}")
        with self._turn:
            return self._operations[operation](params)

    def submit(self, request: Request, identity: str = "") -> Submitted:
        """Makes a job or an array, which waits from now on. Raises Refused."""
        queue = self.registry.queue(request["jobQueue"])
        definition = self.registry.definition(request["jobDefinition"])
        size = request.get("arrayProperties", {}).get("size")
        if not NAME.fullmatch(request["jobName"]):
            raise client_problem(f"jobName {request['jobName']}: letters, digits, - and _, up to 128")
        if size is not None and size not in ARRAY:
            raise client_problem(
                f"arrayProperties.size {size}: array job size must be between {ARRAY[0]} and {ARRAY[-1]}"
            )
        if queue["state"] != "ENABLED":
            raise client_problem(f"JobQueue {queue['jobQueueArn']} is in state {queue['state']}")
        made = Submitted(
            request, queue, definition, account=self.account, region=self.region, clock=self.clock, identity=identity
        )
        self.submitted[made.id] = made
        return made

    def _submit(self, request: Request) -> Request:
        made = self.submit(request)
        self.begin(made)
        return {"jobArn": made.arn, "jobName": made.name, "jobId": made.id}

    def _describe(self, request: Request) -> Request:
        """Describes jobs; unknown ids are left out, and are not an error."""
        if len(request["jobs"]) > MOST:
            raise client_problem(f"At most {MOST} jobs can be described")
        found = [self._one(identity.rpartition("/")[2]) for identity in request["jobs"]]
        return {"jobs": [one.described() for one in found if one is not None]}

    def _list(self, request: Request) -> Request:
        """Lists the newest first: of a queue in one status, RUNNING by default; children only by their array."""
        if parent := request.get("arrayJobId"):
            made = self.submitted.get(parent)
            things: list[Submitted] | list[Job] = made.jobs if made and made.is_array else []
        else:
            queue = self.registry.queue(request.get("jobQueue", ""))["jobQueueArn"]
            things = [one for one in reversed(self.submitted.values()) if one.queue == queue]
        found = [summary(one) for one in (thing.described() for thing in things) if fits(one, request)]
        shown, following = self.pages.cut(
            found, request.get("nextToken"), request.get("maxResults", MOST), self.clock.time()
        )
        return {"jobSummaryList": shown, **({"nextToken": following} if following else {})}

    def _end(self, request: Request, mark: str, which: Collection[str]) -> Request:
        """Ends a job, or every child of an array; the array ends with its last child. Jobs that have ended stay unchanged."""
        found = self._one(request["jobId"])
        if found is None:
            raise client_problem(f"Job {request['jobId']} does not exist")
        jobs = found.jobs if isinstance(found, Submitted) else [found]
        due = [job for job in jobs if job.status in which and not getattr(job, mark)]
        array = [found] if isinstance(found, Submitted) and found.status not in ENDED else []
        for one in (*array, *due):
            setattr(one, mark, True)
            one.reason = request["reason"]
        for job in due:
            self.end(job)
        return {}

    def _tag(self, request: Request) -> Request:
        self._tagged(request["resourceArn"]).update(request["tags"])
        return {}

    def _tagged(self, arn: str) -> dict[str, str]:
        if made := self.submitted.get(arn.rpartition("/")[2]):
            return made.tags
        found = self.registry.tagged(arn)
        if found is None:
            raise client_problem(f"{arn} does not exist")
        own: dict[str, str] = found.setdefault("tags", {})
        return own

    def _one(self, identity: str) -> Submitted | Job | None:
        parent, _, index = identity.partition(":")
        made = self.submitted.get(parent)
        if made is None or not index:
            return made
        return made.jobs[int(index)] if made.is_array and int(index) < len(made.jobs) else None
