"""Every Batch call of the functions: lists a queue's jobs that are not over by their tags, and terminates them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from aws.clients import client

ALIVE = ("SUBMITTED", "PENDING", "RUNNABLE", "STARTING", "RUNNING")
"""Statuses of a job that is not over. An array as a whole is PENDING for as long as one of its children is not."""
DESCRIBED = 100
"""The most that DescribeJobs takes."""
REFUSED = "ClientException"
"""Batch's code for every mistake in a request ..."""
ABSENT = ("does not exist", "not found")
"""... and the words of its message where the queue does not exist; Batch has used both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJob:
    """A job, or an array as a whole."""

    id: str
    name: str
    status: str
    created_at: float
    """UTC epoch seconds."""
    tags: Mapping[str, str]


class BatchJobs:
    """The jobs of one queue, in the function's own region."""

    def __init__(self, queue: str, given: Any = None) -> None:
        """Calls through the client `given`, where there is one."""
        self.queue = queue
        self._client: Any = given or client("batch")
        self.answer: Mapping[str, Any] = {}
        """Batch's last one, for the time that it says."""

    def alive(self, tags: Mapping[str, str]) -> list[BatchJob]:
        """All that are not over and carry these tags, without the children of arrays; none where the queue does not exist.

        A job that changes its status meanwhile may be missing: a caller that has to be sure asks until there is none.
        """
        ids = dict.fromkeys(one for status in ALIVE for one in self._listed(status))
        return [one for one in self.described(list(ids)) if one.status in ALIVE and tags.items() <= one.tags.items()]

    def described(self, ids: list[str]) -> list[BatchJob]:
        """Those that Batch still knows: it forgets a job some days after its end."""
        chunks = (ids[start : start + DESCRIBED] for start in range(0, len(ids), DESCRIBED))
        return [_job(one) for some in chunks for one in self._describe(some)]

    def terminate(self, job: str, reason: str) -> None:
        """Terminates the job, or every child of an array. One that is over is left as it is."""
        self._client.terminate_job(jobId=job, reason=reason)

    def _describe(self, ids: list[str]) -> list[Mapping[str, Any]]:
        self.answer = self._client.describe_jobs(jobs=ids)
        found: list[Mapping[str, Any]] = self.answer["jobs"]
        return found

    def _listed(self, status: str) -> list[str]:
        pages = self._client.get_paginator("list_jobs").paginate(jobQueue=self.queue, jobStatus=status)
        ids: list[str] = []
        try:
            for page in pages:
                self.answer = page
                ids += [one["jobId"] for one in page["jobSummaryList"]]
        except ClientError as problem:
            error = problem.response["Error"]
            if error["Code"] == REFUSED and any(words in error.get("Message", "") for words in ABSENT):
                return []
            raise
        return ids


def _job(raw: Mapping[str, Any]) -> BatchJob:
    return BatchJob(
        id=raw["jobId"],
        name=raw["jobName"],
        status=raw["status"],
        created_at=raw.get("createdAt", 0) / 1000,
        tags=raw.get("tags") or {},
    )
