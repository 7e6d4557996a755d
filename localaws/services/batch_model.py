"""Batch of one region: queues in which jobs wait, jobs and arrays by their ids, listed a status at a time, and their ends.

Who makes one gives it a clock and, by a subclass, a way to run what was submitted.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection

from localaws.model import ACCOUNT, Clock, Pages
from localaws.services.batch_jobs import ENDED, STATUSES, WAITING, Job, Request, Submitted, fits, summary
from localaws.services.batch_registry import NAME, Registry, client_problem

ARRAY = range(2, 10_001)
"""Children that an array may have."""
MOST = 100
"""Jobs of a page of ListJobs, and of a DescribeJobs, at most."""


class Batch(ABC):
    """A child of an array is `<array's id>:<index>`."""

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
        """Its jobs are RUNNABLE since now."""

    @abstractmethod
    def end(self, job: Job) -> None:
        """Somebody terminated or cancelled the job, which is not over yet."""

    # what AWS's API does

    def answer(self, operation: str, params: Request) -> Request:
        """Raises Refused."""
        if operation not in self._operations:
            raise client_problem(f"The local Batch has no {operation}")
        with self._turn:
            return self._operations[operation](params)

    def submit(self, request: Request, identity: str = "") -> Submitted:
        """A job or an array that waits from now on. Raises Refused."""
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
        """What is not known is left out, and no error."""
        if len(request["jobs"]) > MOST:
            raise client_problem(f"At most {MOST} jobs can be described")
        found = [self._one(identity.rpartition("/")[2]) for identity in request["jobs"]]
        return {"jobs": [one.described() for one in found if one is not None]}

    def _list(self, request: Request) -> Request:
        """The newest first; of a queue in one status, RUNNING where none is named; children by their array alone."""
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
        """Of an array, every child; it is over with the last of them. What is over stays as it is, as what was ended before."""
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
